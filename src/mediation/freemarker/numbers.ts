/** Numbers as texts: those of the locale en_US, patterns of Java's DecimalFormat, and back. */
import { rawDigits } from '../formats/json-text.ts'
import type { Json } from '../value.ts'

/** A decimal number: digits before and behind the point. */
interface Decimal {
  readonly isNegative: boolean
  readonly whole: string
  readonly fraction: string
}

/** Longest shift of the point; numbers beyond it are no doubles either. */
const SHIFT_MAX = 400
const NAMED: Readonly<Record<string, string>> = { number: '#,##0.###', currency: '¤#,##0.00', percent: '#,##0%' }
const COMPUTER = '0.################'

/** Why a pattern is refused; '' for none. */
export function numberFormatProblem(format: string): string {
  if (isComputer(format) || Object.hasOwn(NAMED, format) || format === '') return ''
  return PATTERN.test(format) && /[#0]/.test(format) ? '' : 'is not a number format that is supported'
}

/** `format`: one of the names, '' for `number`, or a pattern. Undefined for a pattern that is refused. */
export function formatNumber(value: number | Json, format: string): string | undefined {
  const decimal = decimalOf(value)
  if (decimal === undefined) return specialNumber(Number(rawDigits(value as Json) ?? value), isComputer(format))
  if (isComputer(format)) return formatted(decimal, PATTERN.exec(COMPUTER)!)
  const name = format === '' ? 'number' : format
  const pattern = PATTERN.exec(Object.hasOwn(NAMED, name) ? NAMED[name]! : format)
  return pattern === null ? undefined : formatted(decimal, pattern)
}

function isComputer(format: string): boolean {
  return format === 'computer' || format === 'c'
}

function specialNumber(value: number, isComputer: boolean): string {
  if (Number.isNaN(value)) return 'NaN'
  return `${value < 0 ? '-' : ''}${isComputer ? 'Infinity' : '∞'}`
}

/** Undefined for a number that is not finite. */
function decimalOf(value: number | Json): Decimal | undefined {
  const text = rawDigits(value as Json) ?? String(value)
  const [, sign, digits, behind = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const shift = Number(exponent)
  if (Math.abs(shift) > SHIFT_MAX) return decimalOf(Number(text))
  const all = digits + behind
  const point = digits.length + shift
  const padded = point < 0 ? '0'.repeat(-point) + all : all.padEnd(point, '0')
  const at = Math.max(0, point)
  const whole = padded.slice(0, at).replace(/^0+/, '')
  return { isNegative: sign === '-', whole, fraction: padded.slice(at).replace(/0+$/, '') }
}

/** Prefix, whole digits, fraction digits, suffix. A text in quotes, and a second pattern for numbers below 0. */
const PATTERN = /^((?:[^#0,.;'E%]|'[^']*')*)([#,]*[0,]*)(?:\.(0*#*))?((?:[^#0,.;'E]|'[^']*')*)(?:;[\s\S]*)?$/

function formatted(
  decimal: Decimal,
  [, prefix = '', wholes = '', fractions = '', suffix = '']: RegExpExecArray,
): string {
  const scaled = suffix.includes('%') ? moved(decimal, 2) : decimal
  const { isNegative, whole, fraction } = rounded(scaled, fractions.length)
  const least = wholes.replace(/[^0]/g, '').length
  const digits = whole.padStart(least, '0')
  const comma = wholes.lastIndexOf(',')
  const group = comma === -1 ? 0 : wholes.length - comma - 1
  const grouped = group === 0 ? digits : inGroups(digits, group)
  const leastFraction = fractions.replace(/#/g, '').length
  const shown = fraction.padEnd(leastFraction, '0')
  const number = (grouped === '' && shown === '' ? '0' : grouped) + (shown === '' ? '' : `.${shown}`)
  return (isNegative ? '-' : '') + literal(prefix) + number + literal(suffix)
}

/** In linear time: a client may send a number of a million digits. */
function inGroups(digits: string, size: number): string {
  const groups: string[] = []
  for (let to = digits.length; to > 0; to -= size) groups.push(digits.slice(Math.max(0, to - size), to))
  return groups.toReversed().join(',')
}

function literal(text: string): string {
  return text.replace(/'([^']*)'/g, (_, quoted: string) => (quoted === '' ? "'" : quoted)).replace('¤', '$')
}

function moved({ isNegative, whole, fraction }: Decimal, places: number): Decimal {
  const padded = fraction.padEnd(places, '0')
  const digits = (whole + padded.slice(0, places)).replace(/^0+/, '')
  return { isNegative, whole: digits, fraction: padded.slice(places) }
}

/** Rounds half to even, as Java does. */
function rounded({ isNegative, whole, fraction }: Decimal, places: number): Decimal {
  if (fraction.length <= places) return { isNegative, whole, fraction }
  const kept = whole + fraction.slice(0, places)
  const cut = fraction.slice(places)
  const isHalf = /^50*$/.test(cut)
  const isUp = isHalf ? /[13579]$/.test(kept) : cut >= '5'
  const digits = (isUp ? String(BigInt(kept === '' ? '0' : kept) + 1n) : kept).padStart(kept.length, '0')
  const at = digits.length - places
  return {
    isNegative,
    whole: digits.slice(0, at).replace(/^0+/, ''),
    fraction: digits.slice(at).replace(/0+$/, ''),
  }
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/** The number that a text is; undefined for other texts. */
export function parseNumber(text: string): number | undefined {
  const trimmed = text.trim()
  if (trimmed === 'NaN') return Number.NaN
  if (/^-?Infinity$|^-?INF$/.test(trimmed)) return trimmed.startsWith('-') ? -Infinity : Infinity
  return NUMBER.test(trimmed) ? Number(trimmed) : undefined
}

/** Digits of a double that are the same in decimal arithmetic, which Java has. */
const DIGITS = 15
const QUOTIENT_PLACES = 12

export function calculate(operator: '+' | '-' | '*' | '/' | '%', left: number, right: number): number {
  switch (operator) {
    case '+':
      return decimal(left + right)
    case '-':
      return decimal(left - right)
    case '*':
      return decimal(left * right)
    case '/':
      return quotient(left / right)
    case '%':
      return Math.trunc(left) % Math.trunc(right)
  }
}

function decimal(value: number): number {
  return Number.isSafeInteger(value) || !Number.isFinite(value) ? value : Number(value.toPrecision(DIGITS))
}

function quotient(value: number): number {
  const exact = decimal(value)
  return Math.abs(exact) < 1e6 ? Number(exact.toFixed(QUOTIENT_PLACES)) : exact
}
