import { useEffect } from "react";
import { segments } from "../lib/api";
import { useResource } from "../lib/resource";
import type { DatasetPage, MapNode, PlannedChange } from "../lib/types";
import { Problem } from "../ui/basics";
import { breakable } from "../ui/breakable";
import { ChangeForm, Hits, useImpact } from "../ui/impact";
import { SideHead } from "./edgeside";
import { light } from "./light";
import type { Model } from "./model";

/** A change of a dataset: who is hit, listed here and lit in the graph. */
export function ImpactSide({
  dataset,
  change,
  model,
  ask,
  close,
}: {
  dataset: MapNode;
  change: PlannedChange;
  model: Model;
  ask: (change: PlannedChange) => void;
  close: () => void;
}) {
  const { answer, error } = useImpact(dataset.id, change);
  const page = useResource<DatasetPage>(
    `/api/v2/datasets/${segments(dataset.namespace, dataset.name)}`,
  );
  useEffect(() => {
    if (answer) light.impact(answer, model.wires, model.boxes);
    return () => light.off();
  }, [answer, model]);
  return (
    <aside className="side" aria-label="Impact">
      <SideHead icon="target" title="Impact" close={close} />
      <h2 className="wrap">{breakable(dataset.name)}</h2>
      <ChangeForm
        columns={(page.data?.columns ?? []).map((field) => field.name)}
        chosen={change}
        ask={ask}
      />
      {error ? <Problem error={error} /> : null}
      {answer ? <Hits answer={answer} /> : null}
    </aside>
  );
}
