/** Hints for values that their key does not take. */
import { formatValue } from './diagnostics.ts'
import type { KeyInstance } from './key-instances.ts'
import { nearest } from './nearest.ts'

type Definition = KeyInstance['definition']

/** `secret`: the hint shows nothing of the value. */
export function hintFor({ key, definition }: KeyInstance, given: unknown, secret: boolean): string {
  const spelling = acceptedSpelling(definition, given, secret)
  if (spelling !== '') return spelling
  if (definition.required) return 'it has no default'
  return secret
    ? 'it is not shown, because it is a secret'
    : `the default is ${key} = ${formatValue(definition.defaultValue)}`
}

/** How to write the same value so that the key takes it; '' where there is no such spelling. */
function acceptedSpelling(definition: Definition, given: unknown, secret: boolean): string {
  if (typeof given === 'string') return secret ? '' : spellingOfText(definition, given)
  if (typeof given === 'number' || typeof given === 'boolean' || given instanceof Date) {
    const text = given instanceof Date ? given.toISOString() : String(given)
    if (definition.kind !== 'list' && definition.read(text) !== undefined) {
      return secret ? 'write it in quotes' : `write it in quotes: "${text}"`
    }
    return secret ? '' : spellingOfText(definition, text)
  }
  if (!Array.isArray(given)) return ''
  if (given.some(Array.isArray)) return 'write one list, without lists in it'
  return given.length === 1 && definition.read(given[0]) !== undefined ? 'write it without brackets' : ''
}

function spellingOfText({ kind, schema, read }: Definition, given: string): string {
  const number = numberFor(given)
  if (read(number) !== undefined) return `write it without quotes: ${number}`
  if (kind === 'boolean') return flagFor(given)
  const shorter = kind === 'duration' ? durationFor(given) : kind === 'host' ? hostOf(given) : ''
  if (shorter !== '' && read(shorter) !== undefined) return `write "${shorter}"`
  const options = Array.isArray(schema.enum) ? schema.enum.filter(option => typeof option === 'string') : []
  const guess = options.find(option => option.toLowerCase() === given.toLowerCase()) ?? nearest(given, options)
  return guess === '' ? '' : `did you mean "${guess}"?`
}

/** A comma separates thousands only in groups of three; "2,5" is 2.5 and must not become 25. */
function numberFor(given: string): number {
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

/** "5m" for "5 minutes". */
function durationFor(given: string): string {
  const [, digits = '', word = ''] = /^\s*(\d{1,12})\s*([a-z]+)\.?\s*$/i.exec(given) ?? []
  const unit = word.toLowerCase()
  if (digits === '') return ''
  return digits + (unit.startsWith('mil') || unit === 'ms' || unit === 'msec' ? 'ms' : unit.charAt(0))
}

/** The host of a URL, or of `host:port`. */
function hostOf(given: string): string {
  const url = given.includes('://') ? given : `http://${given}`
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[(.*)\]$/, '$1') : ''
}
