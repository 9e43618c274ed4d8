/**
 * The value of every key: its default, or what the file says, or what `--set` says, references followed. Remembers
 * which of them won, and collects every fault there is.
 */
import { allKeys, type CatalogueKey, type Configuration, RULES, SECTIONS } from './catalogue.ts'
import { type Fault, show } from './fault.ts'
import { nearest } from './nearest.ts'
import { presentKeys } from './present-keys.ts'
import { expand, type Found, hasReference, type Lookup, Unresolved } from './references.ts'
import { type PlacedRow, type Setting, withoutPlaces } from './setting.ts'
import { misplaced, unknownOnes } from './strangers.ts'

export interface ResolvedKey extends CatalogueKey {
  readonly value: unknown
  /** '' where the default holds. */
  readonly where: string
  /** The key is one, or its value refers to one. */
  readonly secret: boolean
  readonly faulty: boolean
}

export interface Resolution {
  readonly keys: readonly ResolvedKey[]
  readonly faults: readonly Fault[]
  /** Keys and sections that the catalogue does not have: warnings at start, faults under `check`. */
  readonly unknown: readonly Fault[]
  readonly warnings: readonly Fault[]
  readonly configuration: Configuration
}

/** Later settings of a key win over earlier ones. */
export function resolve(
  settings: readonly Setting[],
  rows: readonly PlacedRow[],
  properties: ReadonlyMap<string, string>,
): Resolution {
  const { winners, faults: twice } = winnersOf(settings)
  const present = presentKeys([...winners.keys()], rows)
  const values = new ValueSearch(winners, present, rows, properties)
  const keys = present.map(key => values.resolved(key))
  const configuration = assemble(keys)
  const broken = rulesBroken(keys, configuration)
  return {
    keys,
    faults: [...twice, ...values.faults, ...misplaced(winners, rows), ...broken.faults],
    unknown: unknownOnes(winners, present),
    warnings: [...inertOnes(keys), ...broken.warnings],
    configuration,
  }
}

/** Other spellings of keys, without places, and how the catalogue spells them. */
const ALIASES: ReadonlyMap<string, { readonly alias: string; readonly key: string }> = new Map(
  allKeys().flatMap(({ section, key, definition }) =>
    definition.aliases.map(alias => [`${section}.${alias}`, { alias, key }] as const),
  ),
)

/** By the catalogue's spelling. A key that one file sets under two spellings has no value that would be right. */
function winnersOf(settings: readonly Setting[]): {
  readonly winners: ReadonlyMap<string, Setting>
  readonly faults: readonly Fault[]
} {
  const winners = new Map<string, Setting>()
  const faults: Fault[] = []
  for (const setting of settings) {
    const { alias, key } = ALIASES.get(withoutPlaces(setting.path)) ?? { alias: '', key: '' }
    const path = `${setting.path.slice(0, setting.path.length - alias.length)}${key}`
    const before = winners.get(path)
    const areOfTheFile = before !== undefined && before.line > 0 && setting.line > 0
    if (areOfTheFile && before.path !== setting.path) {
      const remedy = `it is already set as ${before.path} (${before.where}); leave one of them out`
      faults.push({ where: setting.where, key: setting.path, given: '', expected: 'set twice', remedy })
    }
    winners.set(path, setting)
  }
  return { winners, faults }
}

interface Settled extends Found {
  readonly faulty: boolean
}

const FAILED: Settled = { value: undefined, secret: false, faulty: true }

/** Finds values in the order references need them. */
class ValueSearch {
  readonly faults: Fault[] = []
  readonly #winners: ReadonlyMap<string, Setting>
  readonly #properties: ReadonlyMap<string, string>
  readonly #known: ReadonlyMap<string, CatalogueKey>
  readonly #rows: ReadonlyMap<string, string>
  readonly #settled = new Map<string, Settled>()
  /** The keys being settled, outermost first: meeting one of them again closes a circle. */
  readonly #chain: string[] = []
  readonly #lookup: Lookup = { key: path => this.#referred(path), property: name => this.#property(name) }

  constructor(
    winners: ReadonlyMap<string, Setting>,
    present: readonly CatalogueKey[],
    rows: readonly PlacedRow[],
    properties: ReadonlyMap<string, string>,
  ) {
    this.#winners = winners
    this.#known = new Map(present.map(key => [key.path, key]))
    this.#rows = new Map(rows.map(row => [row.path, row.where]))
    this.#properties = properties
  }

  resolved(key: CatalogueKey): ResolvedKey {
    const settled = this.#settle(key.path)
    return {
      ...key,
      value: settled.faulty ? key.definition.fallback : settled.value,
      where: this.#winners.get(key.path)?.where ?? '',
      secret: settled.secret || key.definition.secret,
      faulty: settled.faulty,
    }
  }

  #settle(path: string): Settled {
    const before = this.#settled.get(path)
    if (before !== undefined) return before
    this.#chain.push(path)
    const settled = this.#read(path)
    this.#chain.pop()
    this.#settled.set(path, settled)
    return settled
  }

  #read(path: string): Settled {
    const setting = this.#winners.get(path)
    const definition = this.#known.get(path)?.definition
    const where = setting?.where ?? 'default'
    const shown = definition?.secret ? '(set)' : show(setting?.value)
    if (setting === undefined && definition?.required) {
      if (this.#opened(path) !== '') return this.#missing(path)
      // Nobody uses the section: what it must have is missed by nobody.
      return { value: definition.fallback, secret: definition.secret, faulty: false }
    }
    try {
      const given = setting === undefined ? this.#fallback(path) : setting.value
      const found = expand(given, this.#lookup)
      if (definition === undefined) return { ...found, faulty: false }
      const secret = found.secret || definition.secret
      const value = firstReadable(definition.read, candidates(given, found.value, setting))
      if (value !== undefined) return { value, secret, faulty: false }
      const result = hasReference(given) && !secret ? `, and it comes to ${show(found.value)}` : ''
      const { expects } = definition
      const remedy = secret ? '' : remedyFor(this.#known.get(path)!, found.value)
      this.faults.push({ where, key: path, given: shown, expected: `expected ${expects}${result}`, remedy })
    } catch (error) {
      if (!(error instanceof Unresolved)) throw error
      if (error.message !== '') {
        this.faults.push({ where, key: path, given: shown, expected: error.message, remedy: error.remedy })
      }
    }
    return FAILED
  }

  /** Where its row stands, or the first key of its section that was set; '' where nobody uses the section. */
  #opened(path: string): string {
    const { section } = this.#known.get(path)!
    const row = this.#rows.get(section)
    if (row !== undefined) return row
    return this.#winners.values().find(setting => setting.path.startsWith(`${section}.`))?.where ?? ''
  }

  #missing(path: string): Settled {
    const { section, definition } = this.#known.get(path)!
    const expected = this.#rows.has(section)
      ? 'is missing, and every row needs it'
      : `is missing, and [${section}] needs it`
    this.faults.push({
      where: this.#opened(path),
      key: path,
      given: '',
      expected,
      remedy: `expected ${definition.expects}`,
    })
    return FAILED
  }

  #fallback(path: string): unknown {
    const { section, definition } = this.#known.get(path)!
    const { ceiling, follows, fallback } = definition
    if (follows !== '') return `$ref{${follows.startsWith('.') ? section : ''}${follows}}`
    if (ceiling === '') return fallback
    return Math.min(fallback as number, this.#referred(`${section}.${ceiling}`).value as number)
  }

  #referred(path: string): Found {
    const from = this.#chain.indexOf(path)
    if (from >= 0) {
      const circle = [...this.#chain.slice(from), path].join(' -> ')
      throw new Unresolved(`references run in a circle: ${circle}`, 'give one of them a value')
    }
    if (!this.#known.has(path) && !this.#winners.has(path)) {
      const guess = nearest(path, [...this.#known.keys()])
      throw new Unresolved(
        `there is no key ${path} to refer to`,
        guess === '' ? 'write section.key' : `did you mean ${guess}?`,
      )
    }
    const settled = this.#settle(path)
    if (settled.faulty) throw new Unresolved('', '')
    return settled
  }

  #property(name: string): Found {
    if (name === 'host') return this.#referred('server.hostname')
    if (name === 'offset') return this.#referred('server.offset')
    const value = this.#properties.get(name)
    if (value !== undefined) return { value, secret: false }
    const names = ['host', 'offset', ...this.#properties.keys()].sort().join(', ')
    throw new Unresolved(`there is no property ${name}`, `properties are ${names}; another key is $ref{section.key}`)
  }
}

/** What a given value may be read as. Text from outside TOML has no type: a number in it counts as one. */
function candidates(given: unknown, value: unknown, setting: Setting | undefined): readonly unknown[] {
  const listed = [value]
  if (setting?.otherwise !== undefined) listed.push(setting.otherwise)
  if (hasReference(given) && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) listed.push(Number(value))
  return listed
}

function firstReadable(read: (given: unknown) => unknown, listed: readonly unknown[]): unknown {
  return listed.map(read).find(value => value !== undefined)
}

function remedyFor({ key, definition }: CatalogueKey, given: unknown): string {
  const unquoted = typeof given === 'string' ? definition.read(Number(given.trim() || Number.NaN)) : undefined
  if (unquoted !== undefined) return `write it without quotes: ${unquoted}`
  if (definition.kind !== 'list' && typeof given === 'number' && definition.read(String(given)) !== undefined) {
    return `write it in quotes: "${given}"`
  }
  if (definition.required) return 'every row must set it'
  return `the default is ${key} = ${show(definition.fallback)}`
}

function assemble(keys: readonly ResolvedKey[]): Configuration {
  const bySection = Map.groupBy(keys, key => key.section)
  const sections = SECTIONS.map(({ name, repeated }) => {
    if (!repeated) return [name, valuesOf(bySection.get(name) ?? [])]
    const rows = [...bySection].filter(([section]) => withoutPlaces(section) === name)
    return [name, Object.freeze(rows.map(([, row]) => valuesOf(row)))]
  })
  return Object.freeze(Object.fromEntries(sections)) as Configuration
}

function valuesOf(keys: readonly ResolvedKey[]): Readonly<Record<string, unknown>> {
  return Object.freeze(Object.fromEntries(keys.map(({ key, value }) => [key, Object.freeze(value)])))
}

interface RulesBroken {
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

function rulesBroken(keys: readonly ResolvedKey[], configuration: Configuration): RulesBroken {
  const byPath = new Map(keys.map(key => [key.path, key]))
  const sections = [...new Set(keys.map(key => key.section))]
  const faults: Fault[] = []
  const warnings: Fault[] = []
  for (const rule of RULES) {
    const listed = rule.severity === 'fault' ? faults : warnings
    if (rule.repeats === '')
      listed.push(
        ...brokenBy(
          rule,
          rule.keys.map(path => byPath.get(path)!),
          configuration,
          0,
        ),
      )
    const rows = sections.filter(section => rule.repeats !== '' && withoutPlaces(section) === rule.repeats)
    rows.forEach((section, row) => {
      const about = rule.keys.map(path => byPath.get(section + path.slice(rule.repeats.length))!)
      listed.push(...brokenBy(rule, about, configuration, row))
    })
  }
  return { faults, warnings }
}

/** The fault, or nothing. */
function brokenBy(
  rule: (typeof RULES)[number],
  about: readonly ResolvedKey[],
  configuration: Configuration,
  row: number,
): readonly Fault[] {
  // A key that is wrong by itself has its own fault; judging its default here would add a riddle to it.
  if (about.some(key => key.faulty) || rule.holds(configuration, row)) return []
  // A warning is about a value somebody chose: the default of its key needs no advice.
  if (rule.severity === 'warning' && about[0]!.where === '') return []
  const culprit = about.find(key => key.where !== '') ?? about[0]!
  const others = about.filter(key => key !== culprit).map(whereAndWhat)
  return [
    {
      where: culprit.where === '' ? 'default' : culprit.where,
      key: culprit.path,
      given: shown(culprit),
      expected: rule.must,
      remedy: others.length === 0 ? 'choose another value' : `beside it ${others.join(' and ')}`,
    },
  ]
}

function whereAndWhat(key: ResolvedKey): string {
  return `${key.path} = ${shown(key)} (${key.where === '' ? 'default' : key.where})`
}

/** A value as it may be printed. */
export function shown(key: ResolvedKey): string {
  if (!key.secret) return show(key.value)
  return key.value === '' ? '(not set)' : '(set)'
}

function inertOnes(keys: readonly ResolvedKey[]): readonly Fault[] {
  return keys
    .filter(key => key.where !== '' && key.definition.inertReason !== '')
    .map(key => ({
      where: key.where,
      key: key.path,
      given: '',
      expected: 'is accepted and not acted on',
      remedy: key.definition.inertReason,
    }))
}
