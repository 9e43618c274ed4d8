/** Condition groups of advanced policies in the form of the reference platform. */
import { compilePattern } from '../runtime/pattern.ts'
import { addressNumber, readInterval } from './address-intervals.ts'
import type { BodyPath, BodyReader } from './body-reader.ts'
import { limitBody, readLimit } from './limit-body.ts'
import type { Condition, ConditionGroup, Quota } from './policy.ts'

const GROUPS_MAX = 100
const CONDITIONS_MAX = 100
const PATTERN_CHARS_MAX = 1000
/** RFC 9110 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~\w-]+$/

/** By type: the member that holds the condition, and the members of that. */
const MEMBERS = {
  IPCONDITION: ['ipCondition', ['ipConditionType', 'specificIP', 'startingIP', 'endingIP']],
  HEADERCONDITION: ['headerCondition', ['headerName', 'headerValue']],
  QUERYPARAMETERCONDITION: ['queryParameterCondition', ['parameterName', 'parameterValue']],
  JWTCLAIMSCONDITION: ['jwtClaimsCondition', ['claimUrl', 'attribute']],
} as const
type ConditionType = keyof typeof MEMBERS
const TYPES = Object.keys(MEMBERS) as readonly ConditionType[]

const TEXT_CONDITIONS = {
  HEADERCONDITION: 'header',
  QUERYPARAMETERCONDITION: 'query',
  JWTCLAIMSCONDITION: 'claim',
} as const

/** Keys that enable conditions, by their type; conditions on addresses need none. */
export const ENABLING_KEYS = {
  header: 'apim.throttling.enable_header_based_throttling',
  claim: 'apim.throttling.enable_jwt_claim_based_throttling',
  query: 'apim.throttling.enable_query_param_based_throttling',
} as const

export function readGroups(reader: BodyReader, window: Quota['window']): readonly ConditionGroup[] {
  return reader.items(['conditionalGroups'], GROUPS_MAX).flatMap(path => {
    if (!reader.map(path, ['description', 'conditions', 'limit'])) return []
    const description = reader.has([...path, 'description']) ? String(reader.value([...path, 'description'])) : ''
    const conditions = reader.items([...path, 'conditions'], CONDITIONS_MAX).flatMap(at => readCondition(reader, at))
    if (reader.items([...path, 'conditions'], CONDITIONS_MAX).length === 0)
      reader.error([...path, 'conditions'], undefined, 'has no condition', 'use defaultLimit for all other requests')
    const quota = readLimit(reader, [...path, 'limit'], window)
    if (quota === null) {
      reader.error([...path, 'limit'], undefined, 'has no limit', 'write one for this group')
      return []
    }
    return [{ description: description.slice(0, 255), conditions, quota }]
  })
}

function readCondition(reader: BodyReader, path: BodyPath): readonly Condition[] {
  if (!reader.map(path, ['type', 'invertCondition', ...TYPES.map(type => MEMBERS[type][0])])) return []
  const type = reader.choice([...path, 'type'], TYPES)
  const inverted = reader.flag([...path, 'invertCondition'], false)
  const [member, names] = MEMBERS[type]
  const at = [...path, member]
  if (!reader.map(at, names)) return []
  if (type === 'IPCONDITION') return [readAddressCondition(reader, at, inverted)]
  const [name, value] = names as readonly [string, string]
  const pattern = reader.text([...at, value], PATTERN_CHARS_MAX)
  checkPattern(reader, [...at, value], pattern)
  const named = reader.text([...at, name])
  if (type === 'HEADERCONDITION' && named !== '' && !FIELD_NAME.test(named))
    reader.error([...at, name], named, 'is no name of a header', 'write one such as User-Agent')
  return [{ type: TEXT_CONDITIONS[type], inverted, name: named, pattern }]
}

function checkPattern(reader: BodyReader, path: BodyPath, pattern: string): void {
  try {
    compilePattern(pattern)
  } catch (error) {
    const cause = (error as Error).message.replace(/\s+/g, ' ').slice(0, 200)
    reader.error(path, pattern, `is no regular expression: ${cause}`, 'correct it; the syntax is that of RE2')
  }
}

function readAddressCondition(reader: BodyReader, at: BodyPath, inverted: boolean): Condition {
  const kind = reader.choice([...at, 'ipConditionType'], ['IPSPECIFIC', 'IPRANGE'])
  if (kind === 'IPSPECIFIC') return { type: 'address', inverted, address: readAddress(reader, [...at, 'specificIP']) }
  const from = readAddress(reader, [...at, 'startingIP'])
  const to = readAddress(reader, [...at, 'endingIP'])
  checkRange(reader, [...at, 'endingIP'], from, to)
  return { type: 'range', inverted, from, to }
}

/** '' after an error. */
export function readAddress(reader: BodyReader, path: BodyPath): string {
  const text = reader.text(path)
  if (text === '' || addressNumber(text) !== undefined) return text
  reader.error(path, text, 'is no IP address', 'write one such as 192.0.2.1 or 2001:db8::1')
  return ''
}

/** An error at `path` unless the range begins before its end, in one family. */
export function checkRange(reader: BodyReader, path: BodyPath, from: string, to: string): void {
  if (from === '' || to === '' || readInterval(`${from}-${to}`) !== undefined) return
  reader.error(path, to, `is no end of a range from ${from}`, 'write a later address of the same family')
}

export function groupsBody(groups: readonly ConditionGroup[]): readonly unknown[] {
  return groups.map(({ description, conditions, quota }) => {
    return { description, conditions: conditions.map(conditionBody), limit: limitBody(quota) }
  })
}

function conditionBody(condition: Condition): Readonly<Record<string, unknown>> {
  const invertCondition = condition.inverted
  if (condition.type === 'address') {
    const ipCondition = { ipConditionType: 'IPSPECIFIC', specificIP: condition.address }
    return { type: 'IPCONDITION', invertCondition, ipCondition }
  }
  if (condition.type === 'range') {
    const ipCondition = { ipConditionType: 'IPRANGE', startingIP: condition.from, endingIP: condition.to }
    return { type: 'IPCONDITION', invertCondition, ipCondition }
  }
  const type = TYPES.find(each => each !== 'IPCONDITION' && TEXT_CONDITIONS[each] === condition.type)!
  const [member, [name, value]] = MEMBERS[type]
  return { type, invertCondition, [member]: { [name]: condition.name, [value]: condition.pattern } }
}
