/** Checks the rules between keys, and reports each violation at one of the keys that it is about. */
import { type Configuration, RULES } from './catalogue.ts'
import { type Diagnostic, formatValue } from './diagnostics.ts'
import type { ResolvedKey } from './resolve.ts'
import { withoutIndexes } from './setting.ts'

interface RuleViolations {
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

type CatalogueRule = (typeof RULES)[number]

/** `rows`: path of a row -> place of its header. */
export function ruleViolations(
  keys: readonly ResolvedKey[],
  configuration: Configuration,
  rows: ReadonlyMap<string, string>,
): RuleViolations {
  const rowsOf = Map.groupBy(new Set(keys.map(key => key.section)), withoutIndexes)
  // Most configurations break no rule.
  let byPath: ReadonlyMap<string, ResolvedKey> | undefined
  const errors: Diagnostic[] = []
  const warnings: Diagnostic[] = []
  for (const rule of RULES) {
    const violations = rule.severity === 'error' ? errors : warnings
    for (const [row, section] of (rule.repeats === '' ? [''] : (rowsOf.get(rule.repeats) ?? [])).entries()) {
      if (rule.holds(configuration, row)) continue
      byPath ??= new Map(keys.map(key => [key.path, key]))
      const about = rule.keys.flatMap(path => byPath?.get(inRow(path, rule, section)) ?? [])
      // An invalid key has an error of its own; its value here is only the default.
      if (about.some(key => key.invalid)) continue
      // Values that all come from another section have their error there.
      if (about.length > 0 && about.every(isTakenOver)) continue
      // A warning is about a value that the operator has set, not about a default.
      if (rule.severity === 'warning' && (about[0]?.where ?? '') === '') continue
      violations.push(violation(rule, about, rows.get(section) ?? 'default'))
    }
  }
  return { errors, warnings }
}

function isTakenOver({ where, definition: { follows } }: ResolvedKey): boolean {
  return where === '' && follows !== '' && !follows.startsWith('.')
}

function inRow(path: string, { repeats }: CatalogueRule, row: string): string {
  return repeats !== '' && path.startsWith(`${repeats}.`) ? row + path.slice(repeats.length) : path
}

/** `fallbackWhere`: place for a key that is not set. */
function violation({ must, keys }: CatalogueRule, about: readonly ResolvedKey[], fallbackWhere: string): Diagnostic {
  const reported = about.find(key => key.where !== '') ?? about[0]
  if (reported === undefined) return { where: fallbackWhere, key: keys[0]!, given: '', expected: must, hint: 'set it' }
  const others = about.filter(key => key !== reported).map(keyWithValue)
  const alone = reported.where === '' ? 'set it' : 'choose another value'
  return {
    where: reported.where === '' ? fallbackWhere : reported.where,
    key: reported.path,
    given: formatKeyValue(reported),
    expected: must,
    hint: others.length === 0 ? alone : `beside it ${others.join(' and ')}`,
  }
}

function keyWithValue(key: ResolvedKey): string {
  return `${key.path} = ${formatKeyValue(key)} (${key.where === '' ? 'default' : key.where})`
}

/** A value as messages show it; `(set)` or `(not set)` for a secret. */
export function formatKeyValue(key: ResolvedKey, lengthMax?: number): string {
  if (!key.secret) return formatValue(key.value, lengthMax)
  return key.value === '' ? '(not set)' : '(set)'
}
