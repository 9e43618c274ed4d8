/** What keys must agree on and do not, blamed on one of them. */
import { type Configuration, RULES } from './catalogue.ts'
import { type Fault, show } from './fault.ts'
import type { ResolvedKey } from './resolve.ts'
import { withoutPlaces } from './setting.ts'

interface RulesBroken {
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

type CatalogueRule = (typeof RULES)[number]

/** `rows`: row -> where it is opened. */
export function rulesBroken(
  keys: readonly ResolvedKey[],
  configuration: Configuration,
  rows: ReadonlyMap<string, string>,
): RulesBroken {
  const rowsOf = Map.groupBy(new Set(keys.map(key => key.section)), withoutPlaces)
  // Made for the first rule that is broken, which most configurations never have.
  let byPath: ReadonlyMap<string, ResolvedKey> | undefined
  const faults: Fault[] = []
  const warnings: Fault[] = []
  for (const rule of RULES) {
    const listed = rule.severity === 'fault' ? faults : warnings
    for (const [row, section] of (rule.repeats === '' ? [''] : (rowsOf.get(rule.repeats) ?? [])).entries()) {
      if (rule.holds(configuration, row)) continue
      byPath ??= new Map(keys.map(key => [key.path, key]))
      const about = rule.keys.flatMap(path => byPath?.get(inRow(path, rule, section)) ?? [])
      // A key that is wrong by itself has its own fault; judging its default here would add a riddle to it.
      if (about.some(key => key.faulty)) continue
      // A warning is about a value somebody chose: the default of its key needs no advice.
      if (rule.severity === 'warning' && (about[0]?.where ?? '') === '') continue
      listed.push(faultOf(rule, about, rows.get(section) ?? 'default'))
    }
  }
  return { faults, warnings }
}

function inRow(path: string, { repeats }: CatalogueRule, row: string): string {
  return repeats !== '' && path.startsWith(`${repeats}.`) ? row + path.slice(repeats.length) : path
}

function faultOf({ must, keys }: CatalogueRule, about: readonly ResolvedKey[], elsewhere: string): Fault {
  const culprit = about.find(key => key.where !== '') ?? about[0]
  if (culprit === undefined) return { where: elsewhere, key: keys[0]!, given: '', expected: must, remedy: 'set it' }
  const others = about.filter(key => key !== culprit).map(whereAndWhat)
  const alone = culprit.where === '' ? 'set it' : 'choose another value'
  return {
    where: culprit.where === '' ? elsewhere : culprit.where,
    key: culprit.path,
    given: shown(culprit),
    expected: must,
    remedy: others.length === 0 ? alone : `beside it ${others.join(' and ')}`,
  }
}

function whereAndWhat(key: ResolvedKey): string {
  return `${key.path} = ${shown(key)} (${key.where === '' ? 'default' : key.where})`
}

/** A value as it may be printed. */
export function shown(key: ResolvedKey, longest?: number): string {
  if (!key.secret) return show(key.value, longest)
  return key.value === '' ? '(not set)' : '(set)'
}
