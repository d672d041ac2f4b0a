import { type FormEvent, useState } from "react";
import { link } from "../lib/live";
import { change, type Refresh, settings, type Theme } from "../lib/settings";
import { useStore } from "../lib/store";
import { Panel } from "../ui/basics";

export function TokenForm() {
  const { token } = useStore(settings);
  const denied = useStore(link) === "denied";
  const [text, setText] = useState("");
  function save(event: FormEvent): void {
    event.preventDefault();
    change({ token: text.trim() });
    setText("");
  }
  return (
    <div className={denied ? "page narrow" : ""}>
      {denied ? (
        <>
          <h1>This server needs a token</h1>
          <p className="lead">
            {token
              ? "The token is not known to the server, or its role may not read."
              : "Paste one whose role is read or admin."}
          </p>
        </>
      ) : null}
      <form className="form" onSubmit={save}>
        <label htmlFor="token">Token</label>
        <div className="form-row">
          <input
            id="token"
            type="password"
            autoComplete="off"
            placeholder={token ? "A token is in use" : "hw_…"}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <button type="submit" className="button primary" disabled={!text.trim()}>
            Use it
          </button>
          {token ? (
            <button type="button" className="button" onClick={() => change({ token: "" })}>
              Forget it
            </button>
          ) : null}
        </div>
        <p className="muted">
          Kept for this tab only, gone when it is closed.{" "}
          <code>headwater token create NAME --role read</code> makes one.
        </p>
      </form>
    </div>
  );
}

interface ChoiceProps<T extends string> {
  legend: string;
  about: string;
  value: T;
  options: [T, string][];
  pick: (value: T) => void;
}

function Choice<T extends string>({ legend, about, value, options, pick }: ChoiceProps<T>) {
  return (
    <fieldset className="choice">
      <legend>{legend}</legend>
      <div className="segments">
        {options.map(([option, name]) => (
          <label key={option}>
            <input
              type="radio"
              name={legend}
              checked={value === option}
              onChange={() => pick(option)}
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
      <p className="muted">{about}</p>
    </fieldset>
  );
}

export function SettingsPage() {
  const { theme, refresh } = useStore(settings);
  return (
    <div className="page narrow">
      <h1>Settings</h1>
      <Panel title="Access">
        <TokenForm />
      </Panel>
      <Panel title="Look">
        <Choice<Theme>
          legend="Theme"
          about="System follows what your computer says."
          value={theme}
          options={[
            ["system", "System"],
            ["light", "Light"],
            ["dark", "Dark"],
          ]}
          pick={(value) => change({ theme: value })}
        />
        <Choice<Refresh>
          legend="Refresh"
          about="How soon a page follows a change. Off leaves it as it is until you reload it."
          value={refresh}
          options={[
            ["live", "Live"],
            ["10", "10 s"],
            ["60", "1 min"],
            ["off", "Off"],
          ]}
          pick={(value) => change({ refresh: value })}
        />
      </Panel>
    </div>
  );
}
