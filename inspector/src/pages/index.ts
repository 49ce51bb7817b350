/** The pages by the name that stands in their address. */

import type { JSX } from "preact";
import type { Place } from "../route";
import { AnswerPage } from "./answer";
import { DiffPage } from "./diff";
import { EpisodesPage } from "./episodes";
import { EventPage } from "./event";
import { FactsPage } from "./facts";
import { FlowPage } from "./flow";
import { LessonPage, LessonsPage } from "./lessons";
import { PacketPage, PacketsPage } from "./packet";
import { PurposesPage } from "./purposes";
import { ResearchPage, StudyPage } from "./research";
import { RulePage, RulesPage } from "./rules";
import { RunPage } from "./run";
import { RunsPage } from "./runs";
import { SearchPage } from "./search";
import { WhatIfPage } from "./whatif";

/** A map, not an object: the name comes from the address, and `__proto__` is no page. */
export const PAGES = new Map<string, (props: { place: Place }) => JSX.Element>(
  Object.entries({
    answer: AnswerPage,
    runs: RunsPage,
    run: RunPage,
    event: EventPage,
    packets: PacketsPage,
    packet: PacketPage,
    purposes: PurposesPage,
    diff: DiffPage,
    whatif: WhatIfPage,
    search: SearchPage,
    facts: FactsPage,
    episodes: EpisodesPage,
    lessons: LessonsPage,
    lesson: LessonPage,
    rules: RulesPage,
    rule: RulePage,
    flow: FlowPage,
    research: ResearchPage,
    study: StudyPage,
  }),
);
