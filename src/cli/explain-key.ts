/** All there is to know about one key. The names of these facts are those of `--json`, and stay what they are. */
import { SECTIONS } from '../config/catalogue.ts'
import { variableOf } from '../config/environment.ts'
import { describe, type Fault, fewOf, printable, show } from '../config/fault.ts'
import { FREE_NAME, keyPath, ROLES } from '../config/key.ts'
import { defaultOf, inertNote } from '../config/published.ts'
import { PROPERTIES, type Surroundings } from '../config/properties.ts'
import { expand, type Found, type Reference } from '../config/references.ts'
import { type Resolution, type ResolvedKey, shown } from '../config/resolve.ts'
import { withoutPlaces } from '../config/setting.ts'
import { plainValue, withoutCredentials } from '../primary/plain-value.ts'
import { chainsOf } from './explain-chain.ts'
import { type PoolSum, sumOf } from './explain-pools.ts'
import { type RuleFact, rulesOf } from './explain-rules.ts'
import type { Machine } from './machine.ts'
import { paint, type Terminal } from './terminal.ts'

/** What the questions about every key are answered from. */
export interface Situation extends Pick<Resolution, 'keys' | 'faults' | 'configuration'> {
  readonly byPath: ReadonlyMap<string, ResolvedKey>
  /** Rows in the order of the file. */
  readonly sections: readonly string[]
  readonly surroundings: Surroundings
  readonly machine: Machine
  readonly burst: number
}

interface KeyFacts {
  readonly key: string
  /** null where there is no row, or no name, that could have one. */
  readonly value: unknown
  readonly default: unknown
  /** The key whose value is the default; '' for none. */
  readonly sameAs: string
  /** It is set, and not to its default. */
  readonly changed: boolean
  readonly where: string
  /** What set it as well and did not win, the last first. */
  readonly overrode: readonly { readonly where: string; readonly value: unknown }[]
  readonly through: readonly string[]
  readonly faulty: boolean
  readonly faults: readonly string[]
  readonly required: boolean
  readonly secret: boolean
  readonly type: string
  readonly unit: string
  readonly range: string
  readonly expects: string
  readonly aliases: readonly string[]
  /** Of the environment, which overrides the file; '' where the file must have the row, or the name, first. */
  readonly variable: string
  readonly meaning: string
  readonly roles: readonly string[]
  readonly readBy: readonly string[]
  /** Keys whose default it is. */
  readonly followedBy: readonly string[]
  readonly effect: 'reload' | 'restart' | 'none'
  readonly inert: string
  readonly rules: readonly RuleFact[]
  readonly pool: PoolSum | null
}

export function factsOf(key: ResolvedKey, situation: Situation): KeyFacts {
  const { definition } = key
  const section = sectionOf(key)
  const isInert = definition.inertReason !== ''
  return {
    key: key.path,
    value: absence(key) === '' ? plainValue(key.value, key.secret) : null,
    default: definition.secret ? '' : withoutCredentials(definition.fallback),
    sameAs: sameAs(key),
    changed: isChanged(key, situation),
    where: key.where,
    overrode: key.settings
      .slice(0, -1)
      .reverse()
      .map(({ where, value }) => ({ where, value: plainValue(value, key.secret) })),
    through: chainsOf(key, situation.byPath),
    faulty: key.faulty,
    faults: faultsOf(key, situation.faults).map(describe),
    required: definition.required,
    secret: key.secret,
    type: definition.kind,
    unit: definition.unit,
    range: definition.range,
    expects: definition.expects,
    aliases: definition.aliases,
    variable: absence(key) === '' ? variableOf(key.path) : '',
    meaning: definition.meaning,
    roles: section.roles,
    readBy: isInert ? [] : section.readBy,
    followedBy: situation.keys.filter(each => sameAs(each) === key.path).map(({ path }) => path),
    effect: isInert ? 'none' : definition.isLive ? 'reload' : 'restart',
    inert: definition.inertReason,
    rules: rulesOf(key, situation),
    pool: poolOf(key, situation),
  }
}

/** Set, and to another value than its default. Of a secret that is set nothing more is said. */
export function isChanged(key: ResolvedKey, situation: Pick<Situation, 'byPath' | 'surroundings'>): boolean {
  if (key.where === '') return false
  if (key.secret || key.faulty) return true
  const written = sameAs(key) === '' ? key.definition.fallback : `$ref{${sameAs(key)}}`
  return JSON.stringify(key.value) !== JSON.stringify(ordinaryValue(written, situation))
}

/** What a default comes to that refers to keys or properties. */
function ordinaryValue(
  written: unknown,
  { byPath, surroundings }: Pick<Situation, 'byPath' | 'surroundings'>,
): unknown {
  const key = (path: string): Found => ({ value: byPath.get(path)?.value, secret: false })
  const find = ({ kind, name }: Reference): Found => {
    const property = PROPERTIES.find(each => kind === '' && each.name === name)
    return property === undefined ? key(name) : property.find({ ...surroundings, key })
  }
  return expand(written, find).value
}

/** '' where the default stands by itself. */
function sameAs({ section, definition: { follows } }: ResolvedKey): string {
  return `${follows.startsWith('.') ? section : ''}${follows}`
}

function sectionOf({ section }: ResolvedKey): (typeof SECTIONS)[number] {
  const name = withoutPlaces(section)
  return SECTIONS.find(each => each.name === name)!
}

function faultsOf({ path }: ResolvedKey, faults: readonly Fault[]): readonly Fault[] {
  return faults.filter(fault => fault.key === path)
}

/** A number that is secret is no less so in a sum. */
function poolOf({ section, key }: ResolvedKey, { byPath, machine, burst }: Situation): PoolSum | null {
  let isSecret = false
  const numberOf = (name: string): number => {
    const sibling = byPath.get(keyPath(section, name))
    isSecret ||= sibling?.secret ?? false
    return Number(sibling?.value ?? 0)
  }
  const sum = sumOf(withoutPlaces(section), key)?.(numberOf, machine, burst)
  return sum === undefined || isSecret ? null : sum
}

/** Why there is no such key to have a value; '' for those that there are. */
export function absence(key: ResolvedKey): string {
  if (key.path.includes(FREE_NAME)) return `nobody has chosen a name for ${FREE_NAME}`
  const isRow = key.section !== withoutPlaces(key.section)
  return sectionOf(key).repeated && !isRow ? `there is no [[${key.section}]]` : ''
}

/** Longer ones are in the file, where it says. */
const VALUE_SHOWN = 4096

function valueSaid(key: ResolvedKey): string {
  if (absence(key) !== '') return `none: ${absence(key)}`
  const value = readable(key, VALUE_SHOWN)
  return key.faulty ? `${value}, the default: what was set is faulty` : value
}

/** A value with its unit, or with the name it has. */
export function readable(key: ResolvedKey, longest?: number): string {
  const { named, unit } = key.definition
  const meaning = named[String(key.value)]
  if (meaning !== undefined) return `${shown(key)} (${meaning})`
  return unit === '' || key.secret ? shown(key, longest) : `${shown(key)} ${unit}`
}

const EFFECTS = { reload: 'at a reload or a restart', restart: 'at a restart', none: '' } as const

export function explainKey(output: Terminal, key: ResolvedKey, situation: Situation): void {
  const facts = factsOf(key, situation)
  const { definition } = key
  const built = definition.inertReason === '' ? '' : 'when built: '
  const rows: readonly (readonly [string, string])[] = [
    ['value', valueSaid(key)],
    ['default', defaultOf(definition)],
    ['set', facts.where === '' ? 'nowhere, so the default holds' : facts.where],
    ...facts.overrode.map(({ where, value }) => ['overrode', `${where}: ${key.secret ? value : show(value)}`] as const),
    ...facts.through.map(chain => ['through', chain] as const),
    ['type', facts.type],
    ['unit', facts.unit],
    ['range', facts.range],
    ['required', facts.required ? 'wherever its section is used' : ''],
    ['spelled', facts.aliases.length === 0 ? '' : `${facts.aliases.join(', ')} as well`],
    ['variable', facts.variable],
    ['meaning', facts.meaning],
    ['roles', rolesSaid(facts.roles, situation)],
    ['followed', followersSaid(facts.followedBy)],
    ['read by', facts.readBy.map(file => `src/${file}`).join(', ')],
    ['effect', EFFECTS[facts.effect]],
    ['acted on', definition.inertReason === '' ? 'yes' : `no: ${definition.inertReason}`],
    ...facts.rules.map(rule => ['rule', `${rule.must} (${verdict(rule)})`] as const),
    ...(facts.pool?.lines ?? []).map(line => ['sum', `${built}${line}`] as const),
    ...facts.faults.map(fault => ['fault', fault] as const),
  ]
  output.write(`${paint(output, 'bold', printable(key.path))}\n`)
  for (const [name, value] of rows) {
    if (value !== '') output.write(`  ${paint(output, 'dim', name.padEnd(8))}  ${printable(value)}\n`)
  }
}

const FOLLOWERS_SHOWN = 4

function followersSaid(paths: readonly string[]): string {
  if (paths.length === 0) return ''
  return `by ${fewOf(paths, FOLLOWERS_SHOWN)}`
}

function rolesSaid(roles: readonly string[], { byPath }: Situation): string {
  if (roles.length === ROLES.length) return 'every node'
  const own = String(byPath.get('server.server_role')?.value)
  return `${roles.join(', ')}${roles.includes(own) ? '' : `; not this node, which is ${own}`}`
}

const UNJUDGED: Readonly<Record<Exclude<RuleFact['unjudged'], ''>, string>> = {
  'no row': 'not judged: there is no row',
  faulty: 'not judged: a value is faulty',
  'not set': 'only warned of where it is set',
}

function verdict({ holds, severity, unjudged }: RuleFact): string {
  if (unjudged !== '') return UNJUDGED[unjudged]
  return holds ? 'holds' : `broken, a ${severity}`
}

/** Why a section as a whole is not acted on; '' for one of which a key is. */
export function idleNote({ section }: ResolvedKey): string {
  const keys = Object.values(SECTIONS.find(({ name }) => name === withoutPlaces(section))!.keys)
  if (keys.some(key => key.inertReason === '')) return ''
  const notes = new Set(keys.map(inertNote))
  return notes.size === 1 ? [...notes][0]! : 'Not acted on, for several reasons'
}
