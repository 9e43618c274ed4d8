/** Everything about one key for `explain`: value, where it is set, references, rules, pool calculation. */
import { type Configuration, RULES, SECTIONS } from '../config/catalogue.ts'
import { abbreviatedList, formatDiagnostic, formatValue, printable } from '../config/diagnostics.ts'
import { variableName } from '../config/environment.ts'
import { describeDefault, inertNote } from '../config/key-description.ts'
import { FREE_NAME, keyPath, ROLES } from '../config/key.ts'
import { type Folders, PROPERTIES } from '../config/properties.ts'
import { expandReferences, type Reference, type ReferencedValue, referenceText } from '../config/references.ts'
import { type JudgedRequirement, judgedRequirements } from '../config/keys-without-effect.ts'
import { formatKeyValue, type Resolution, type ResolvedKey } from '../config/resolve.ts'
import { withoutIndexes } from '../config/setting.ts'
import { canonicalPath } from '../config/tables.ts'
import { plainValue, withoutCredentials } from '../primary/plain-value.ts'
import { type PoolFacts, type PoolCalculation, poolCalculation } from './explain-pools.ts'
import { paint, type Terminal } from './terminal.ts'

/** The configuration whose keys are explained, and the numbers for sums of pools. */
export interface ExplainContext extends Pick<Resolution, 'keys' | 'errors' | 'configuration'> {
  readonly byPath: ReadonlyMap<string, ResolvedKey>
  /** Sections that exist, rows in the order of the file. */
  readonly sections: readonly string[]
  readonly folders: Folders
  readonly facts: PoolFacts
  readonly burst: number
}

/** One key as `--json` prints it. */
interface KeyExplanation {
  readonly key: string
  /** Null without a row, or a name, that could have a value. */
  readonly value: unknown
  readonly default: unknown
  /** The key whose value is the default; '' for none. */
  readonly defaultKey: string
  /** Set, and not to its default. */
  readonly changed: boolean
  readonly where: string
  /** Settings with less precedence, the last one first. */
  readonly overridden: readonly { readonly where: string; readonly value: unknown }[]
  /** Chains of references that lead to the value. */
  readonly references: readonly string[]
  readonly invalid: boolean
  readonly errors: readonly string[]
  readonly required: boolean
  readonly secret: boolean
  readonly type: string
  readonly unit: string
  readonly range: string
  readonly expects: string
  readonly aliases: readonly string[]
  /** Environment variable that overrides the file; '' if the file must have the row or the name first. */
  readonly variable: string
  readonly meaning: string
  readonly roles: readonly string[]
  /** Keys whose default is the value of this key. */
  readonly defaultOf: readonly string[]
  /** When a changed value applies; `none` for an inert key. */
  readonly appliesAfter: 'reload' | 'restart' | 'none'
  readonly inert: string
  /** Conditions under which the key acts, with the role of the node; empty for a key that always or never acts. */
  readonly actsWhen: readonly ActsWhen[]
  readonly rules: readonly RuleResult[]
  readonly pool: PoolCalculation | null
}

interface ActsWhen extends Pick<JudgedRequirement, 'holds' | 'state' | 'otherwise'> {
  readonly condition: string
}

export function explanationOf(key: ResolvedKey, context: ExplainContext): KeyExplanation {
  const { definition } = key
  const isInert = definition.inertReason !== ''
  const requirements = isInert ? [] : judgedRequirements(key, context.byPath)
  return {
    key: key.path,
    value: missingReason(key) === '' ? plainValue(key.value, key.secret) : null,
    default: definition.secret ? '' : withoutCredentials(definition.defaultValue),
    defaultKey: defaultKey(key),
    changed: isChanged(key, context),
    where: key.where,
    overridden: key.settings
      .slice(0, -1)
      .reverse()
      .map(({ where, value }) => ({ where, value: plainValue(value, key.secret) })),
    references: referenceChains(key, context.byPath),
    invalid: key.invalid,
    errors: context.errors.filter(error => error.key === key.path).map(formatDiagnostic),
    required: definition.required,
    secret: key.secret,
    type: definition.kind,
    unit: definition.unit,
    range: definition.range,
    expects: definition.expects,
    aliases: definition.aliases,
    variable: missingReason(key) === '' ? variableName(key.path) : '',
    meaning: definition.meaning,
    roles: sectionOf(key).roles,
    defaultOf: context.keys.filter(other => defaultKey(other) === key.path).map(({ path }) => path),
    appliesAfter: isInert ? 'none' : definition.isLive ? 'reload' : 'restart',
    inert: definition.inertReason,
    actsWhen: requirements.map(({ text, holds, state, otherwise }) => ({ condition: text, holds, state, otherwise })),
    rules: ruleResults(key, context),
    pool: calculatePool(key, context),
  }
}

/** True if the key is set to another value than its default. A secret that is set counts as changed. */
export function isChanged(key: ResolvedKey, context: Pick<ExplainContext, 'byPath' | 'folders'>): boolean {
  if (key.where === '') return false
  if (key.secret || key.invalid) return true
  const written = defaultKey(key) === '' ? key.definition.defaultValue : `$ref{${defaultKey(key)}}`
  return JSON.stringify(key.value) !== JSON.stringify(expandDefault(written, context))
}

/** Expands references to keys and properties in a default value. */
function expandDefault(written: unknown, { byPath, folders }: Pick<ExplainContext, 'byPath' | 'folders'>): unknown {
  const key = (path: string): ReferencedValue => ({ value: byPath.get(path)?.value, secret: false })
  const find = ({ kind, name }: Reference): ReferencedValue => {
    const property = PROPERTIES.find(each => kind === '' && each.name === name)
    return property === undefined ? key(name) : property.find({ ...folders, key })
  }
  return expandReferences(written, find).value
}

/** The key whose value is the default of this key; '' for a default of its own. */
function defaultKey({ section, definition: { follows } }: ResolvedKey): string {
  return `${follows.startsWith('.') ? section : ''}${follows}`
}

function sectionOf({ section }: ResolvedKey): (typeof SECTIONS)[number] {
  const name = withoutIndexes(section)
  return SECTIONS.find(each => each.name === name)!
}

/** Null without a calculation, without a row that has the sizes, or if a size is secret. */
function calculatePool(resolved: ResolvedKey, { byPath, facts, burst }: ExplainContext) {
  const { section, key } = resolved
  if (missingReason(resolved) !== '') return null
  let isSecret = false
  const numberOf = (name: string): number => {
    const sibling = byPath.get(keyPath(section, name))
    isSecret ||= sibling?.secret ?? false
    return Number(sibling?.value ?? 0)
  }
  const calculation = poolCalculation(withoutIndexes(section), key)?.(numberOf, facts, burst)
  return calculation === undefined || isSecret ? null : calculation
}

/** Why the key has no value; '' if it has one. */
export function missingReason(key: ResolvedKey): string {
  if (key.path.includes(FREE_NAME)) return `no name is chosen for ${FREE_NAME}`
  const isRow = key.section !== withoutIndexes(key.section)
  return sectionOf(key).repeated && !isRow ? `there is no [[${key.section}]]` : ''
}

/** Why a section as a whole is inert; '' if one of its keys is not. */
export function inertSectionNote(key: ResolvedKey): string {
  const keys = Object.values(sectionOf(key).keys)
  if (keys.some(({ inertReason }) => inertReason === '')) return ''
  const notes = new Set(keys.map(inertNote))
  return notes.size === 1 ? [...notes][0]! : 'Not acted on, for several reasons'
}

// ---- references -----------------------------------------------------------------------------------------------------

const CHAINS_MAX = 16
const CHAIN_LENGTH_MAX = 64

/** Chains of references that lead to a value: `$ref{server.hostname} -> $env{NAME}`. */
function referenceChains(key: ResolvedKey, keys: ReadonlyMap<string, ResolvedKey>): readonly string[] {
  return chainsFrom(key, keys, [key.path])
    .slice(0, CHAINS_MAX)
    .map(links => links.join(' -> '))
}

function chainsFrom(
  key: ResolvedKey,
  keys: ReadonlyMap<string, ResolvedKey>,
  visited: readonly string[],
): readonly (readonly string[])[] {
  return referencesIn(writtenValue(key)).flatMap(reference => {
    const link = referenceText(reference)
    const path = reference.kind === 'ref' || reference.kind === 'conf' ? canonicalPath(reference.name) : ''
    const next = keys.get(path)
    if (next === undefined || visited.includes(path) || visited.length > CHAIN_LENGTH_MAX) return [[link]]
    const further = chainsFrom(next, keys, [...visited, path])
    return further.length === 0 ? [[link]] : further.slice(0, CHAINS_MAX).map(links => [link, ...links])
  })
}

/** The value before expansion: as set, or the default. */
function writtenValue(key: ResolvedKey): unknown {
  const set = key.settings.at(-1)
  if (set !== undefined) return set.value
  return defaultKey(key) === '' ? key.definition.defaultValue : `$ref{${defaultKey(key)}}`
}

function referencesIn(written: unknown): readonly Reference[] {
  const references: Reference[] = []
  expandReferences(written, reference => {
    references.push(reference)
    return { value: '', secret: false }
  })
  return references
}

// ---- rules ----------------------------------------------------------------------------------------------------------

interface RuleResult {
  readonly rule: string
  readonly severity: 'error' | 'warning'
  readonly keys: readonly string[]
  /** Null if the rule was not checked. */
  readonly holds: boolean | null
  /** Why the rule was not checked; '' if it was. `not set`: a warning about a default value helps nobody. */
  readonly notChecked: NotChecked | ''
}

type NotChecked = 'no row' | 'invalid' | 'not set'
type CatalogueRule = (typeof RULES)[number]

/** Results of the rules that mention the key. Rules with the same text count as one. */
function ruleResults(key: ResolvedKey, context: ExplainContext): readonly RuleResult[] {
  const path = withoutIndexes(key.path)
  const relevant = RULES.filter(rule => rule.keys.includes(path))
  return [...Map.groupBy(relevant, rule => rule.must)].map(([rule, rules]) => ({
    rule,
    severity: rules[0]!.severity,
    keys: [...new Set(rules.flatMap(each => each.keys))],
    ...combine(rules.flatMap(each => checkRule(each, key, context))),
  }))
}

function combine(results: readonly (boolean | NotChecked)[]): Pick<RuleResult, 'holds' | 'notChecked'> {
  for (const holds of [false, true]) if (results.includes(holds)) return { holds, notChecked: '' }
  return { holds: null, notChecked: results.find(result => typeof result === 'string') ?? 'no row' }
}

/** One result, or one for each row that the key belongs to. */
function checkRule(
  rule: CatalogueRule,
  { section }: ResolvedKey,
  context: ExplainContext,
): readonly (boolean | NotChecked)[] {
  if (rule.repeats === '') return [checkRow(rule, '', 0, context)]
  const rows = context.sections.filter(each => withoutIndexes(each) === rule.repeats)
  const relevant = rows.includes(section) ? [section] : rows
  return relevant.map(row => checkRow(rule, row, rows.indexOf(row), context))
}

function checkRow(
  rule: CatalogueRule,
  row: string,
  index: number,
  { configuration, byPath }: { readonly configuration: Configuration; readonly byPath: ExplainContext['byPath'] },
): boolean | NotChecked {
  const keys = rule.keys.flatMap(path => byPath.get(pathInRow(path, rule, row)) ?? [])
  if (keys.some(key => key.invalid)) return 'invalid'
  if (rule.holds(configuration, index)) return true
  return rule.severity === 'warning' && (keys[0]?.where ?? '') === '' ? 'not set' : false
}

function pathInRow(path: string, { repeats }: CatalogueRule, row: string): string {
  return row !== '' && path.startsWith(`${repeats}.`) ? row + path.slice(repeats.length) : path
}

// ---- output ---------------------------------------------------------------------------------------------------------

const LABEL_WIDTH = 10
/** A longer value is read in its file. */
const VALUE_LENGTH_MAX = 4096

export function printKey(output: Terminal, key: ResolvedKey, context: ExplainContext): void {
  const explanation = explanationOf(key, context)
  const { definition } = key
  const notBuilt = definition.inertReason === '' ? '' : 'when built: '
  const rows: readonly (readonly [label: string, text: string])[] = [
    ['value', valueText(key)],
    ['default', describeDefault(definition)],
    ['set', explanation.where === '' ? 'nowhere, so the default applies' : explanation.where],
    ...explanation.overridden.map(
      ({ where, value }) => ['overrides', `${where}: ${key.secret ? value : formatValue(value)}`] as const,
    ),
    ...explanation.references.map(chain => ['refers to', chain] as const),
    ['type', explanation.type],
    ['unit', explanation.unit],
    ['range', explanation.range],
    ['required', explanation.required ? 'wherever its section is used' : ''],
    ['aliases', explanation.aliases.join(', ')],
    ['variable', explanation.variable],
    ['meaning', explanation.meaning],
    ['roles', rolesText(explanation.roles, context)],
    ['default of', abbreviatedList(explanation.defaultOf, FOLLOWERS_SHOWN)],
    ['applies', APPLIES[explanation.appliesAfter]],
    [
      'acted on',
      definition.inertReason === ''
        ? actedOnText(judgedRequirements(key, context.byPath))
        : `no: ${definition.inertReason}`,
    ],
    ...explanation.rules.map(result => ['rule', `${result.rule} (${resultText(result)})`] as const),
    ...(explanation.pool?.lines ?? []).map(line => ['pool', `${notBuilt}${line}`] as const),
    ...explanation.errors.map(error => ['error', error] as const),
  ]
  output.write(`${paint(output, 'bold', printable(key.path))}\n`)
  for (const [label, text] of rows) {
    if (text !== '') output.write(`  ${paint(output, 'dim', label.padEnd(LABEL_WIDTH))}  ${printable(text)}\n`)
  }
}

/** A role that the node has is not mentioned: the roles have a line of their own. */
function actedOnText(requirements: readonly JudgedRequirement[]): string {
  const relevant = requirements.filter(({ isOfSection, holds }) => !isOfSection || holds === false)
  if (relevant.length === 0) return 'yes'
  const when = `when ${relevant.map(({ text }) => text).join(', and ')}`
  const unmet = relevant.filter(({ holds }) => holds === false)
  const states = new Set((unmet.length === 0 ? relevant : unmet).map(({ state }) => state))
  if (relevant.some(({ holds }) => holds === null)) return when
  const reasons = unmet.map(({ otherwise }) => (otherwise === '' ? '' : `; ${otherwise}`))
  return `${when} (${unmet.length === 0 ? 'now' : 'not now'}: ${[...states].join(' and ')}${reasons.join('')})`
}

const APPLIES = { reload: 'after a reload or a restart', restart: 'after a restart', none: '' } as const
const FOLLOWERS_SHOWN = 4

function valueText(key: ResolvedKey): string {
  if (missingReason(key) !== '') return `none: ${missingReason(key)}`
  const value = withUnit(key, VALUE_LENGTH_MAX)
  return key.invalid ? `${value}, the default, because the setting is invalid` : value
}

/** A value with its unit, or with the meaning of a special value. */
export function withUnit(key: ResolvedKey, lengthMax?: number): string {
  const { specialValues, unit } = key.definition
  const meaning = specialValues[String(key.value)]
  if (meaning !== undefined) return `${formatKeyValue(key)} (${meaning})`
  return unit === '' || key.secret ? formatKeyValue(key, lengthMax) : `${formatKeyValue(key)} ${unit}`
}

function rolesText(roles: readonly string[], { byPath }: ExplainContext): string {
  if (roles.length === ROLES.length) return 'all'
  const own = String(byPath.get('server.server_role')?.value)
  return `${roles.join(', ')}${roles.includes(own) ? '' : `; not this node, whose role is ${own}`}`
}

const NOT_CHECKED_TEXT: Readonly<Record<NotChecked, string>> = {
  'no row': 'not checked: there is no row',
  invalid: 'not checked: a value is invalid',
  'not set': 'checked only if it is set',
}

function resultText({ holds, severity, notChecked }: RuleResult): string {
  if (notChecked !== '') return NOT_CHECKED_TEXT[notChecked]
  return holds ? 'holds' : `violated, ${severity === 'error' ? 'an error' : 'a warning'}`
}
