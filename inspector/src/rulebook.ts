/** Records of rules and flow maps, as the pages read them. */

import type {
  FlowMapSnapshot,
  GateReport,
  Intervention,
  PromotionReport,
  ReplayReport,
  RuleStats,
  StageHotspot,
} from "./openapi";

/** A gate's, a replay's or a promotion's: told apart by what they have. */
export type RuleReport = Pick<GateReport, "report_id" | "created_at"> &
  Partial<GateReport & ReplayReport & PromotionReport>;

/** What the estimator tells beside the contract's own fields. */
export type Hotspot = StageHotspot & { risky_n?: number; thin?: boolean };
export type Lift = Intervention & { lower?: number; upper?: number; thin?: boolean };

export function hotspots(map: FlowMapSnapshot): Hotspot[] {
  return ((map.risk.stage_hotspots ?? []) as Hotspot[]).filter((spot) => spot.stage !== undefined);
}

export function lifts(map: FlowMapSnapshot): Lift[] {
  return (map.opportunity.interventions ?? []) as Lift[];
}

export interface Counted {
  passes: number;
  n: number;
}

type Given = { passes?: number; n?: number } | undefined;

function sum(...tallies: Given[]): Counted {
  return tallies.reduce<Counted>(
    (total, each) => ({ passes: total.passes + (each?.passes ?? 0), n: total.n + (each?.n ?? 0) }),
    { passes: 0, n: 0 },
  );
}

/** Runs that had the rule, and runs that left it out. */
export function sides(stats: RuleStats): { with: Counted; without: Counted } {
  const runs = (arm: string): Given => stats.arms[arm]?.runs;
  return { with: sum(runs("canary"), runs("active")), without: sum(runs("baseline"), runs("holdout")) };
}

/** How much more often runs with the rule pass; nothing where a side has no runs. */
export function effect(candidate: Counted, baseline: Counted): number | null {
  return candidate.n && baseline.n ? candidate.passes / candidate.n - baseline.passes / baseline.n : null;
}

export function phases(stats: RuleStats): [string, Counted, Counted][] {
  return (["trial", "hold"] as const).map((name) => [
    name,
    sum(stats[name].candidate),
    sum(stats[name].baseline),
  ]);
}
