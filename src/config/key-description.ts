/** Wording of defaults, conditions and inert reasons that the generated pages, the JSON schema and `explain` share. */
import { conditionText } from './conditions.ts'
import type { Key } from './key.ts'

/** The default of a key, in words where it is not a fixed value; never that of a secret. */
export function describeDefault({ defaultValue, secret, required, cappedBy, follows }: Key<unknown>): string {
  if (required) return 'none: it must be set'
  const cap = cappedBy === '' ? '' : `, or ${cappedBy} where that is less`
  if (follows !== '') return `same as ${follows.startsWith('.') ? follows.slice(1) : follows}${cap}`
  if (secret || defaultValue === '' || (Array.isArray(defaultValue) && defaultValue.length === 0)) return 'none'
  return `${JSON.stringify(defaultValue)}${cap}`
}

/** Why a key is not acted on, as a sentence without its full stop; '' for a key that is. */
export function inertNote({ inertReason }: Key<unknown>): string {
  if (inertReason === '') return ''
  return inertReason.startsWith(NOT_YET) ? `N${inertReason.slice(1)}` : `Not acted on: ${inertReason}`
}

/** Under which conditions a key acts, as a sentence without its full stop; '' for a key that always or never does. */
export function requirementNote({ requirements, inertReason }: Key<unknown>, quote = ''): string {
  if (requirements.length === 0 || inertReason !== '') return ''
  const nameOf = (key: string): string => `${quote}${key.replace(/^\./, '')}${quote}`
  return `Acts when ${requirements.map(({ condition }) => conditionText(condition, nameOf)).join(', and ')}`
}

const NOT_YET = 'not built yet'
