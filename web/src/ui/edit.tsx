import { type FormEvent, useState } from "react";
import { ApiError, segments, sendJson } from "../lib/api";
import { useResource } from "../lib/resource";
import type { Facets, Health, Named } from "../lib/types";
import { Dialog } from "./dialog";
import { Icon } from "./icons";

/** Description, owners and tags of a job or a dataset, for those who may change them. */

export interface Edited extends Named {
  description: string | null;
  tags: string[];
  facets: Facets;
}

export const ABOUT = "headwater_about";

function namesIn(facets: Facets, name: string): string[] {
  const facet = facets[name] as { owners?: unknown } | undefined;
  const found = facet?.owners;
  if (!Array.isArray(found)) return [];
  return found.map((one) => String((one as Record<string, unknown>)?.name ?? "")).filter(Boolean);
}

/** Who owns it: whom people named, else whom its producer names. */
export function owners(facets: Facets): string[] {
  const named = namesIn(facets, ABOUT);
  return named.length > 0 ? named : namesIn(facets, "ownership");
}

/** Names, one a line, each once: a name may hold anything else. */
export function listed(text: string): string[] {
  return [...new Set(text.split("\n").map((one) => one.trim()))].filter(Boolean);
}

type Request = ["POST" | "PUT" | "DELETE", string, unknown?];

/** What to ask of the server, so that what was not touched stays the producer's to say. */
export function requests(
  kind: "job" | "dataset",
  now: Edited,
  wanted: { description: string; owners: string[]; tags: string[] },
): Request[] {
  const named = segments(now.namespace, now.name);
  const said = now.facets[ABOUT] as { description?: string } | undefined;
  const described = wanted.description.trim() !== (now.description ?? "");
  const owned = wanted.owners.join("\n") !== owners(now.facets).join("\n");
  const found: Request[] = [];
  if (described || owned)
    found.push([
      "PUT",
      `/api/v2/${kind}s/${named}/about`,
      {
        description: described ? wanted.description.trim() : (said?.description ?? ""),
        owners: owned ? wanted.owners : namesIn(now.facets, ABOUT),
      },
    ]);
  const [space, name] = [segments(now.namespace), segments(now.name)];
  const tag = (one: string) => `/api/v1/namespaces/${space}/${kind}s/${name}/tags/${segments(one)}`;
  for (const one of wanted.tags) if (!now.tags.includes(one)) found.push(["POST", tag(one)]);
  for (const one of now.tags) if (!wanted.tags.includes(one)) found.push(["DELETE", tag(one)]);
  return found;
}

export function Edit({
  kind,
  of,
  done,
}: {
  kind: "job" | "dataset";
  of: Edited;
  done: () => void;
}) {
  const { data: health } = useResource<Health>("/api/v2/health");
  const [open, setOpen] = useState(false);
  if (!health?.may.includes("write")) return null;
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        <Icon name="pen" size={15} /> Edit
      </button>
      {open ? <Form kind={kind} of={of} done={done} close={() => setOpen(false)} /> : null}
    </>
  );
}

function Form({
  kind,
  of,
  done,
  close,
}: {
  kind: "job" | "dataset";
  of: Edited;
  done: () => void;
  close: () => void;
}) {
  // As it was when the form was opened: what comes meanwhile must not change what is being written.
  const [now] = useState(of);
  const [description, setDescription] = useState(now.description ?? "");
  const [owned, setOwned] = useState(owners(now.facets).join("\n"));
  const [tagged, setTagged] = useState(now.tags.join("\n"));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  async function save(event: FormEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    const wanted = { description, owners: listed(owned), tags: listed(tagged) };
    try {
      for (const request of requests(kind, now, wanted)) await sendJson(...request);
      done();
      close();
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
      done();
    } finally {
      setBusy(false);
    }
  }
  return (
    <Dialog title={`Edit ${now.name}`} close={close}>
      <form className="dialog-body edit-form" onSubmit={(event) => void save(event)}>
        <label>
          Description
          <textarea
            rows={4}
            maxLength={4000}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        </label>
        <label>
          Owners, one a line
          <textarea rows={2} value={owned} onChange={(event) => setOwned(event.target.value)} />
        </label>
        <label>
          Tags, one a line
          <textarea rows={2} value={tagged} onChange={(event) => setTagged(event.target.value)} />
        </label>
        <p className="muted">
          What is written here stands whatever the producer reports; left empty, the producer's word
          counts. Tags that the producer sends stay.
        </p>
        {problem ? (
          <p className="row-error" role="alert">
            {problem}
          </p>
        ) : null}
        <div className="form-row">
          <button type="submit" className="button primary" disabled={busy}>
            Save
          </button>
          <button type="button" className="button" onClick={close}>
            Leave it
          </button>
        </div>
      </form>
    </Dialog>
  );
}
