/**
 * Reads the one shape of Siddhi queries that a counter can act on: requests counted per time batch and throttle key.
 * Anything else is refused with the reason, because a query that is read in part would limit others than it says.
 */
import type { Quota, TimeUnit } from './policy.ts'

type SiddhiResult = { readonly quota: Quota } | { readonly reason: string }

/** Patterns of the words of a statement, which any white space separates. */
function statement(...words: readonly string[]): RegExp {
  return new RegExp(`^${words.join('\\s*')}$`, 'i')
}

const SELECTION = statement(
  ...['from\\s', 'RequestStream\\s', 'select\\s', '(.+?)\\s', 'as\\s', 'isEligible', ','],
  ...['str:concat', '\\((.*)\\)', 'as\\s', 'throttleKey\\s', 'insert\\s', 'into\\s', 'EligibilityStream'],
)
const BATCH = statement(
  ...['from\\s', 'EligibilityStream', '\\[', 'isEligible', '==', 'true', '\\]'],
  ...['#', 'throttler:timeBatch', '\\(', '(\\d{1,9})', '([a-z]+)', '(?:,\\s*0)?', '\\)'],
  ...['select\\s', 'throttleKey', ',', '\\(', '(\\w+)', '\\(', '\\w*', '\\)', '>=', '(\\d{1,12})', '\\)'],
  ...['as\\s', 'isThrottled', ',', 'expiryTimeStamp\\s', 'group\\s', 'by\\s', 'throttleKey\\s'],
  ...['insert\\s', 'all\\s', 'events\\s', 'into\\s', 'ResultStream'],
)
/** Conditions that every request meets. */
const ALWAYS = /^(?:[\w\s,]*,)?\s*\(?\s*(?:true|not\s*\(?\s*\w+\s+is\s+null\s*\)?|\w+\s*!=\s*''|1\s*==\s*1)\s*\)?$/i
const UNITS: Readonly<Record<string, TimeUnit>> = {
  ...{ sec: 'sec', second: 'sec', seconds: 'sec', min: 'min', minute: 'min', minutes: 'min' },
  ...{ hour: 'hour', hours: 'hour', day: 'day', days: 'day', month: 'month', months: 'month' },
}

/** `keyTemplate`: of the policy; the throttle key of the query must be the same. */
export function readSiddhiQuery(query: string, keyTemplate: string): SiddhiResult {
  const statements = query.split(';').map(text => text.replace(/\s+/g, ' ').trim())
  const [selection = '', batch = '', ...rest] = statements
  const selected = SELECTION.exec(selection)
  if (selected === null || rest.some(text => text !== ''))
    return { reason: 'is not of the shape that is recognised: a selection of throttleKey, then a count per timeBatch' }
  const [, eligibility, parts] = selected as unknown as [string, string, string]
  if (!ALWAYS.test(eligibility)) return { reason: 'has a condition in isEligible, which a key template cannot express' }
  const template = templateOf(parts)
  if (template !== keyTemplate)
    return { reason: `counts by ${template === '' ? 'something else' : template}, the policy by ${keyTemplate}` }
  const counted = BATCH.exec(batch)
  if (counted === null) return { reason: 'has no count per throttler:timeBatch grouped by throttleKey' }
  const [, units, unitName, operation, limit] = counted as unknown as [string, string, string, string, string]
  if (operation.toLowerCase() !== 'count') return { reason: `has ${operation} in place of count` }
  const unit = Object.hasOwn(UNITS, unitName.toLowerCase()) ? UNITS[unitName.toLowerCase()] : undefined
  if (unit === undefined || Number(units) < 1 || Number(limit) < 1)
    return { reason: `has no time batch of whole units that is known: ${units} ${unitName}` }
  return { quota: { type: 'requests', limit: Number(limit), unit, units: Number(units), window: 'tumbling' } }
}

/** The key template of the arguments of `str:concat`; '' where an argument is neither a name nor a quoted text. */
function templateOf(args: string): string {
  const parts = args.split(',').map(text => text.trim())
  const texts = parts.map(part => {
    const quoted = /^'([^']*)'$|^"([^"]*)"$/.exec(part)
    if (quoted !== null) return quoted[1] ?? quoted[2] ?? ''
    return /^\w+$/.test(part) ? `$${part}` : '\0'
  })
  const template = texts.join('')
  return template.includes('\0') ? '' : template
}
