import { Store } from "./store";

export type Theme = "system" | "light" | "dark";
export type Refresh = "live" | "10" | "60" | "off";

export interface Settings {
  theme: Theme;
  refresh: Refresh;
  /** Kept for this tab only: in memory and in the session, never in local storage. */
  token: string;
}

const PREFERENCES = "headwater.preferences";
const TOKEN = "headwater.token";

function read(): Settings {
  const settings: Settings = { theme: "system", refresh: "live", token: "" };
  try {
    const kept = JSON.parse(localStorage.getItem(PREFERENCES) ?? "{}") as Partial<Settings>;
    if (kept.theme === "light" || kept.theme === "dark") settings.theme = kept.theme;
    if (kept.refresh === "10" || kept.refresh === "60" || kept.refresh === "off")
      settings.refresh = kept.refresh;
    settings.token = sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    // A browser that keeps nothing still shows the page.
  }
  return settings;
}

export const settings = new Store<Settings>(read());

export function change(part: Partial<Settings>): void {
  const next = { ...settings.get(), ...part };
  settings.set(next);
  try {
    const { theme, refresh } = next;
    localStorage.setItem(PREFERENCES, JSON.stringify({ theme, refresh }));
    if (next.token) sessionStorage.setItem(TOKEN, next.token);
    else sessionStorage.removeItem(TOKEN);
  } catch {
    // It holds until the tab is closed.
  }
}

export function isDark(theme: Theme): boolean {
  if (theme !== "system") return theme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Keep the document's theme in step with the setting and with the system. */
export function followTheme(): void {
  const apply = () => {
    document.documentElement.dataset.theme = isDark(settings.get().theme) ? "dark" : "light";
  };
  apply();
  settings.subscribe(apply);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}
