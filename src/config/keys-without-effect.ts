/**
 * Keys that are set and have no effect: inert keys, and keys whose requirements do not hold. Warnings are grouped by
 * reason, because files of the reference platform set hundreds of such keys.
 */
import { SECTIONS } from './catalogue.ts'
import { conditionText, decidingKeys, holds, isOneOf, withKeys } from './conditions.ts'
import { type Diagnostic, formatValue } from './diagnostics.ts'
import { BUILT_ROLES, type Requirement, type Role, ROLES } from './key.ts'
import type { ResolvedKey } from './resolve.ts'
import { withoutIndexes } from './setting.ts'

type KeysByPath = ReadonlyMap<string, ResolvedKey>

/** A requirement of a key, judged. */
export interface JudgedRequirement {
  /** The section as a whole needs it: the role of the node. */
  readonly isOfSection: boolean
  /** Follows "when". */
  readonly text: string
  /** Null if a key that decides is invalid, or belongs to a row that is not there. */
  readonly holds: boolean | null
  /** The keys that decide, with their values. */
  readonly state: string
  /** Each of the keys that decide is a flag that is false. */
  readonly isSwitchedOff: boolean
  /** Why the key does not act without it; '' where `text` says enough. */
  readonly otherwise: string
}

/** Requirements of a key that acts: the role of the node first, then its own requirements. */
export function judgedRequirements(key: ResolvedKey, byPath: KeysByPath): readonly JudgedRequirement[] {
  const own = key.definition.requirements
  const roles = rolesOf(key)
  if (own.length === 0 && roles.length === ROLES.length) return []
  const role = roles.length === ROLES.length ? [] : [judged(requiredRole(roles), key, byPath, true)]
  return [...role, ...own.map(requirement => judged(requirement, key, byPath, false))]
}

function rolesOf({ section }: ResolvedKey): (typeof SECTIONS)[number]['roles'] {
  const name = withoutIndexes(section)
  return SECTIONS.find(each => each.name === name)!.roles
}

/** A node of a role that is not built runs nothing that reads the section. */
function requiredRole(roles: readonly Role[]): Requirement {
  const built = roles.filter(role => BUILT_ROLES.includes(role))
  return { condition: isOneOf('server.server_role', ...(built.length === 0 ? roles : built)), otherwise: '' }
}

function judged(
  { condition, otherwise }: Requirement,
  { section }: ResolvedKey,
  byPath: KeysByPath,
  isOfSection: boolean,
): JudgedRequirement {
  const here = withKeys(condition, key => (key.startsWith('.') ? section + key : key))
  const deciding = [...new Set(decidingKeys(here))].flatMap(path => byPath.get(path) ?? [])
  const isKnown = deciding.length > 0 && !deciding.some(({ invalid }) => invalid)
  return {
    isOfSection,
    text: conditionText(here, path => path),
    holds: isKnown ? holds(here, path => byPath.get(path)?.value) : null,
    state: deciding.map(stateText).join(' and '),
    isSwitchedOff: deciding.every(({ value }) => value === false),
    otherwise,
  }
}

function stateText({ path, value, where, secret }: ResolvedKey): string {
  const text = value === '' ? 'not set' : secret ? 'set' : formatValue(value)
  return `${path} is ${text} (${where === '' ? 'default' : where})`
}

// ---- warnings -------------------------------------------------------------------------------------------------------

/** Up to so many keys with the same reason get a warning each. */
const SEPARATE_WARNINGS_MAX = 2
/** Up to so many keys of one section are named; beyond that only sections are. */
const NAMED_KEYS_MAX = 6

/** Why keys have no effect. */
interface Reason {
  /** Keys with the same name share a warning. */
  readonly group: string
  /** Follows `is` for one key, `are` for several. */
  readonly expected: (isOne: boolean) => string
  readonly hint: string
}

/** One warning stands at the first line of the file that it is about. */
export function keysWithoutEffect(keys: readonly ResolvedKey[]): readonly Diagnostic[] {
  let byPath: KeysByPath | undefined
  const set = keys.filter(key => key.where !== '')
  const reasons = new Map<ResolvedKey, Reason>()
  for (const key of set) {
    byPath ??= new Map(keys.map(each => [each.path, each]))
    const reason = reasonOf(key, byPath)
    if (reason !== undefined) reasons.set(key, reason)
  }
  const byReason = Map.groupBy(reasons.keys(), key => reasons.get(key)!.group)
  return [...byReason.values()].flatMap(group => {
    const { expected, hint } = reasons.get(group[0]!)!
    if (group.length <= SEPARATE_WARNINGS_MAX) {
      return group.map(({ where, path }) => ({ where, key: path, given: '', expected: expected(true), hint }))
    }
    const first = group.reduce((one, other) => (lineOf(other) < lineOf(one) ? other : one))
    return [{ where: first.where, key: describeKeys(group), given: '', expected: expected(false), hint }]
  })
}

function reasonOf(key: ResolvedKey, byPath: KeysByPath): Reason | undefined {
  const { inertReason } = key.definition
  if (inertReason !== '') {
    const expected = (isOne: boolean): string => `${isOne ? 'is' : 'are'} accepted and not acted on`
    return { group: inertReason, expected, hint: inertReason }
  }
  const unmet = judgedRequirements(key, byPath).find(requirement => requirement.holds === false)
  // Files of the reference platform switch off a part, and everything within it too.
  if (unmet === undefined || key.value === '' || (key.value === false && unmet.isSwitchedOff)) return undefined
  return {
    // An operator who sets such a key wants it to act, so its name matters more than with an inert key.
    group: JSON.stringify([withoutIndexes(key.section), unmet.text, unmet.otherwise]),
    expected: isOne => `${isOne ? 'has' : 'have'} no effect unless ${unmet.text}`,
    hint: [unmet.state, unmet.otherwise].filter(part => part !== '').join('; '),
  }
}

function lineOf({ settings }: ResolvedKey): number {
  const line = settings.at(-1)?.line ?? 0
  return line === 0 ? Number.POSITIVE_INFINITY : line
}

function describeKeys(keys: readonly ResolvedKey[]): string {
  const sections = Map.groupBy(keys, ({ section }) => withoutIndexes(section))
  if (sections.size === 1 && keys.length <= NAMED_KEYS_MAX && keys[0]!.section !== '') {
    return `${keys[0]!.section}: ${keys.map(({ key }) => key).join(', ')}`
  }
  const names = [...sections].map(([section, within]) => {
    return section === '' ? within.map(({ key }) => key).join(', ') : `[${section}]`
  })
  return `${keys.length} keys of ${names.join(', ')}`
}
