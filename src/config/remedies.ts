/** What to do about a value that its key does not take. */
import { show } from './fault.ts'
import { nearest } from './nearest.ts'
import type { PresentKey } from './present-keys.ts'

type Definition = PresentKey['definition']

/** `secret`: nothing of the value may be shown. */
export function remedyFor({ key, definition }: PresentKey, given: unknown, secret: boolean): string {
  const other = otherSpelling(definition, given, secret)
  if (other !== '') return other
  if (definition.required) return 'it has no default'
  return secret ? 'it is not shown, because it is a secret' : `the default is ${key} = ${show(definition.fallback)}`
}

/** The same value as the key would take it; '' where there is no such thing. */
function otherSpelling(definition: Definition, given: unknown, secret: boolean): string {
  if (typeof given === 'string') return secret ? '' : ofText(definition, given)
  if (typeof given === 'number' || typeof given === 'boolean' || given instanceof Date) {
    const written = given instanceof Date ? given.toISOString() : String(given)
    if (definition.kind !== 'list' && definition.read(written) !== undefined) {
      return secret ? 'write it in quotes' : `write it in quotes: "${written}"`
    }
    return secret ? '' : ofText(definition, written)
  }
  if (!Array.isArray(given)) return ''
  if (given.some(Array.isArray)) return 'write one list, without lists in it'
  return given.length === 1 && definition.read(given[0]) !== undefined ? 'write it without brackets' : ''
}

function ofText({ kind, schema, read }: Definition, given: string): string {
  const number = numberMeant(given)
  if (read(number) !== undefined) return `write it without quotes: ${number}`
  if (kind === 'boolean') return flagFor(given)
  const shorter = kind === 'duration' ? durationFor(given) : kind === 'host' ? hostOf(given) : ''
  if (shorter !== '' && read(shorter) !== undefined) return `write "${shorter}"`
  const options = Array.isArray(schema.enum) ? schema.enum.filter(option => typeof option === 'string') : []
  const meant = options.find(option => option.toLowerCase() === given.toLowerCase()) ?? nearest(given, options)
  return meant === '' ? '' : `did you mean "${meant}"?`
}

/** A comma parts thousands, or stands in front of decimals: taken for the wrong one, "2,5" would become 25. */
function numberMeant(given: string): number {
  const digits = given.replaceAll(/[ _]/g, '')
  const isGrouped = /^-?\d{1,3}(,\d{3})+$/.test(digits)
  return Number(digits.replaceAll(',', isGrouped ? '' : '.') || Number.NaN)
}

const YES = ['yes', 'y', 'on', 'true', '1', 'enable', 'enabled']
const NO = ['no', 'n', 'off', 'false', '0', 'disable', 'disabled']

function flagFor(given: string): string {
  const word = given.trim().toLowerCase()
  if (YES.includes(word)) return 'write true'
  return NO.includes(word) ? 'write false' : ''
}

/** "5m" of "5 minutes". */
function durationFor(given: string): string {
  const [, digits = '', word = ''] = /^\s*(\d{1,12})\s*([a-z]+)\.?\s*$/i.exec(given) ?? []
  const unit = word.toLowerCase()
  if (digits === '') return ''
  return digits + (unit.startsWith('mil') || unit === 'ms' || unit === 'msec' ? 'ms' : unit.charAt(0))
}

/** Of a URL, or of a host with a port behind it. */
function hostOf(given: string): string {
  const url = given.includes('://') ? given : `http://${given}`
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[(.*)\]$/, '$1') : ''
}
