/** Settings of an endpoint in a sequence: time-outs, suspension, and elements without effect. */
import { DEFAULT_ENDPOINT_SETTINGS, type EndpointSettings, LONE_ENDPOINT_SETTINGS } from '../apis/api-definition.ts'
import type { XmlElement } from '../config/xml.ts'
import type { ElementParser } from './element-parser.ts'

/** Children of an endpoint that sets time-outs and suspension. */
const SETTINGS = ['timeout', 'suspendOnFailure', 'markForSuspension', 'retryConfig', 'enableAddressing']
/** Attributes of exported endpoints, with the only values that are what happens anyway. */
const WITHOUT_EFFECT = { statistics: 'disable', trace: 'disable', encoding: 'UTF-8' } as const
export const INERT_ATTRIBUTES = Object.keys(WITHOUT_EFFECT) as (keyof typeof WITHOUT_EFFECT)[]
const YEAR_MS = 365 * 86_400_000

/** Settings of the only endpoint, and of one in a group, where there are others to use meanwhile. */
interface Settings {
  readonly alone: EndpointSettings
  readonly inGroup: EndpointSettings
}

/** Returns undefined after an error. `others`: further elements that the endpoint may have. */
export function parseSettings(
  element: XmlElement,
  parser: ElementParser,
  others: readonly string[] = [],
): Settings | undefined {
  const security = parser.only(element, 'enableSec')
  if (security !== undefined) {
    return parser.error(security, '', 'is not supported', 'remove it; an https address protects the connection')
  }
  parser.checkElements(element, [...SETTINGS, ...others])
  warnOfInert(element, parser)
  const timeout = parser.only(element, 'timeout')
  const suspension = parser.only(element, 'suspendOnFailure')
  const mark = parser.only(element, 'markForSuspension')
  const lengths = ['initialDuration', 'progressionFactor', 'maximumDuration']
  if (timeout !== undefined) parser.checkElements(timeout, ['duration', 'responseAction', 'action'])
  if (suspension !== undefined) parser.checkElements(suspension, ['errorCodes', ...lengths])
  if (mark !== undefined) parser.checkElements(mark, ['errorCodes', 'retriesBeforeSuspension', 'retryDelay'])
  const action = textOf(timeout, 'responseAction') || textOf(timeout, 'action') || 'fault'
  if (timeout !== undefined && !['fault', 'discard', 'never'].includes(action)) {
    return parser.error(timeout, 'responseAction', 'expected fault, discard or never', 'write fault', action)
  }
  const setsLength = lengths.some(name => textOf(suspension, name) !== '')
  const count = (parent: XmlElement | undefined, name: string, max: number) => parseCount(parent, name, max, parser)
  const durationMs = count(timeout, 'duration', YEAR_MS) ?? 0
  const own = {
    responseTimeoutMs: action === 'never' ? 0 : durationMs,
    suspensionMs: count(suspension, 'initialDuration', YEAR_MS),
    suspensionFactor: parseFactor(suspension, parser),
    suspensionMaxMs: count(suspension, 'maximumDuration', Number.MAX_SAFE_INTEGER),
    suspendCodes: parseCodes(suspension, parser),
    timeoutCodes: parseCodes(mark, parser),
    retriesBeforeSuspension: count(mark, 'retriesBeforeSuspension', 255),
    retryDelayMs: count(mark, 'retryDelay', YEAR_MS),
  }
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return {
    alone: { ...(setsLength ? DEFAULT_ENDPOINT_SETTINGS : LONE_ENDPOINT_SETTINGS), eachFailureCounts: false, ...given },
    inGroup: {
      ...DEFAULT_ENDPOINT_SETTINGS,
      eachFailureCounts: suspension !== undefined || mark !== undefined,
      ...given,
    },
  }
}

function warnOfInert(element: XmlElement, parser: ElementParser): void {
  for (const name of INERT_ATTRIBUTES) {
    const isInEffect = element.attribute(name).toLowerCase() === WITHOUT_EFFECT[name].toLowerCase()
    if (element.has(name) && !isInEffect) parser.warn(element, name, 'has no effect', 'remove it')
  }
  const addressing = parser.only(element, 'enableAddressing')
  const instead = 'no headers of WS-Addressing are added; remove it, or add them with <header>'
  if (addressing !== undefined) parser.warn(addressing, '', 'has no effect', instead)
  const retries = parser.only(element, 'retryConfig')
  if (retries === undefined) return
  parser.checkElements(retries, ['disabledErrorCodes', 'enabledErrorCodes'])
  const hint = 'failures that the backend may have seen are never tried again; remove it'
  if (retries.children.some(({ text }) => text.trim() !== '')) parser.warn(retries, '', 'has no effect', hint)
}

function textOf(parent: XmlElement | undefined, name: string): string {
  return parent?.child(name)?.text ?? ''
}

/** Returns undefined for the default: for empty text and -1, as in exports, and after an error. */
function parseCount(
  parent: XmlElement | undefined,
  name: string,
  max: number,
  parser: ElementParser,
): number | undefined {
  const text = textOf(parent, name)
  if (parent === undefined || text === '' || text === '-1') return undefined
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number <= max) return number
  if (text.startsWith('{')) {
    return parser.error(parent, name, 'is an expression, which is not supported here', 'write a number', text)
  }
  return parser.error(parent, name, `expected a whole number up to ${max}`, 'leave it out for the default', text)
}

/** Returns undefined as `parseCount` does. */
function parseFactor(parent: XmlElement | undefined, parser: ElementParser): number | undefined {
  const text = textOf(parent, 'progressionFactor')
  if (parent === undefined || text === '' || text === '-1') return undefined
  const factor = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : 0
  if (factor >= 1) return factor
  return parser.error(parent, 'progressionFactor', 'expected a number of at least 1', 'write 1 for equal lengths', text)
}

function parseCodes(parent: XmlElement | undefined, parser: ElementParser): readonly number[] {
  const codes = textOf(parent, 'errorCodes').split(/[\s,]+/)
  return codes.flatMap(code => {
    if (code === '') return []
    if (/^(?:-1|\d{6})$/.test(code)) return [Number(code)]
    parser.error(parent!, 'errorCodes', 'expected error codes of six digits', 'for example 101504', code)
    return []
  })
}
