/** Regular expressions for texts of numbers in a range, because JSON Schema has no other bounds for quoted numbers. */

/** Whole numbers from `from` to `to`, both included and not negative. */
export function numeralPattern(from: number, to: number): string {
  return `^0*(?:${numeralsWithin(from, to)})$`
}

/** `scales`: suffix -> factor to the unit of the bounds; the suffix '' is a number without one. */
export function suffixedPattern(from: number, to: number, scales: Readonly<Record<string, number>>): string {
  const forms = Object.entries(scales).flatMap(([suffix, scale]) => {
    const [least, most] = [Math.ceil(from / scale), Math.floor(to / scale)]
    return least > most ? [] : [`(?:${numeralsWithin(least, most)})${suffix}`]
  })
  return `^0*(?:${forms.join('|')})$`
}

/** More digits than a numeral may have. */
const UNBOUNDED = 1e15

function numeralsWithin(from: number, to: number): string {
  const [first, last] = [String(from), String(Math.min(to, UNBOUNDED - 1))]
  if (first.length === last.length) return ofOneLength(first, last).join('|')
  const between = last.length - first.length > 1 ? [`[1-9]${digits(first.length, last.length - 2)}`] : []
  const shortest = ofOneLength(first, '9'.repeat(first.length))
  const longest = ofOneLength(`1${'0'.repeat(last.length - 1)}`, last)
  return [...shortest, ...between, ...longest].join('|')
}

/** Alternatives for two bounds with the same number of digits. */
function ofOneLength(from: string, to: string): readonly string[] {
  const [low = '', high = ''] = [from[0], to[0]]
  const [lowRest, highRest] = [from.slice(1), to.slice(1)]
  if (low === '') return ['']
  if (low === high) return ofOneLength(lowRest, highRest).map(rest => low + rest)
  const isLowWhole = /^0*$/.test(lowRest)
  const isHighWhole = /^9*$/.test(highRest)
  const first = isLowWhole ? Number(low) : Number(low) + 1
  const last = isHighWhole ? Number(high) : Number(high) - 1
  const length = lowRest.length
  return [
    ...(isLowWhole ? [] : ofOneLength(lowRest, '9'.repeat(length)).map(rest => low + rest)),
    ...(first > last ? [] : [digitFrom(first, last) + digits(length, length)]),
    ...(isHighWhole ? [] : ofOneLength('0'.repeat(length), highRest).map(rest => high + rest)),
  ]
}

function digitFrom(first: number, last: number): string {
  if (first === 0 && last === 9) return '\\d'
  return first === last ? String(first) : `[${first}-${last}]`
}

function digits(least: number, most: number): string {
  if (most === 0) return ''
  if (least === most) return least === 1 ? '\\d' : `\\d{${least}}`
  return `\\d{${least},${most}}`
}
