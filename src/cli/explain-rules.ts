/** The rules that a key takes part in, and whether each of them holds now. */
import { type Configuration, RULES } from '../config/catalogue.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import { withoutPlaces } from '../config/setting.ts'

export interface RuleFact {
  readonly must: string
  readonly severity: 'fault' | 'warning'
  readonly keys: readonly string[]
  /** null where there is nothing to judge. */
  readonly holds: boolean | null
  /** Why there is not: advice about a value that nobody chose is none. */
  readonly unjudged: Unjudged | ''
}

type Unjudged = 'no row' | 'faulty' | 'not set'
/** Of one row, or of the whole. */
type Verdict = boolean | Unjudged

interface Situation {
  readonly configuration: Configuration
  readonly byPath: ReadonlyMap<string, ResolvedKey>
  /** Of the keys that there are, rows in the order of the file. */
  readonly sections: readonly string[]
}

/** Rules that say the same of several keys are one. */
export function rulesOf(key: ResolvedKey, situation: Situation): readonly RuleFact[] {
  const path = withoutPlaces(key.path)
  const about = RULES.filter(rule => rule.keys.includes(path))
  return [...Map.groupBy(about, rule => rule.must)].map(([must, rules]) => ({
    must,
    severity: rules[0]!.severity,
    keys: [...new Set(rules.flatMap(rule => rule.keys))],
    ...together(rules.flatMap(rule => verdicts(rule, key, situation))),
  }))
}

function together(verdicts: readonly Verdict[]): Pick<RuleFact, 'holds' | 'unjudged'> {
  for (const holds of [false, true]) if (verdicts.includes(holds)) return { holds, unjudged: '' }
  return { holds: null, unjudged: verdicts.find(verdict => typeof verdict === 'string') ?? 'no row' }
}

type CatalogueRule = (typeof RULES)[number]

/** One for the whole, or one for each row that the key has a part in. */
function verdicts(rule: CatalogueRule, { section }: ResolvedKey, situation: Situation): readonly Verdict[] {
  if (rule.repeats === '') return [verdict(rule, '', 0, situation)]
  const rows = situation.sections.filter(each => withoutPlaces(each) === rule.repeats)
  const concerned = rows.includes(section) ? [section] : rows
  return concerned.map(row => verdict(rule, row, rows.indexOf(row), situation))
}

function verdict(rule: CatalogueRule, section: string, row: number, situation: Situation): Verdict {
  const about = rule.keys.flatMap(path => situation.byPath.get(inRow(path, rule, section)) ?? [])
  if (about.some(key => key.faulty)) return 'faulty'
  if (rule.holds(situation.configuration, row)) return true
  return rule.severity === 'warning' && (about[0]?.where ?? '') === '' ? 'not set' : false
}

function inRow(path: string, { repeats }: CatalogueRule, row: string): string {
  return row !== '' && path.startsWith(`${repeats}.`) ? row + path.slice(repeats.length) : path
}
