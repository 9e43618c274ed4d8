/** Recorded delays of a backend: milliseconds in any order, or quantiles (`p99 120`), from which delays are drawn. */

/** The file is not understood; the message is for the operator. */
export class DelaysError extends Error {
  override readonly name = 'DelaysError'
}

const VALUES_MAX = 1_000_000
const DELAY_MS_MAX = 600_000
const WORD_CHARS_SHOWN = 40
/** Points of the inverse distribution that stand for quantiles. */
const POINTS = 1001

/** Ascending delays, each as likely as any other. Throws DelaysError. */
export function parseDelays(text: string): readonly number[] {
  const words = text
    .replaceAll(/#.*$/gm, '')
    .split(/[\s,;]+/)
    .filter(word => word !== '')
  if (words.length === 0) throw new DelaysError('the file has no delays: milliseconds, or quantiles such as p99 120')
  if (words.length > VALUES_MAX) throw new DelaysError(`the file has more than ${VALUES_MAX} values`)
  return words[0]!.startsWith('p') ? fromQuantiles(words) : words.map(delayOf).toSorted((one, other) => one - other)
}

function delayOf(word: string): number {
  const delay = Number(word)
  if (!/^\d+(?:\.\d+)?$/.test(word) || delay > DELAY_MS_MAX)
    throw new DelaysError(`${quoted(word)} is no delay: milliseconds, 0 to ${DELAY_MS_MAX}`)
  return delay
}

/** For a terminal, which obeys control characters; a file of another kind may be one long word. */
function quoted(word: string): string {
  const shown = word.length > WORD_CHARS_SHOWN ? `${word.slice(0, WORD_CHARS_SHOWN)}…` : word
  return JSON.stringify(shown.replaceAll(/[\p{Cc}\p{Cf}\ufffd]/gu, '?'))
}

/** Linear between the quantiles, and constant beyond the first and the last one. */
function fromQuantiles(words: readonly string[]): readonly number[] {
  const known: (readonly [share: number, delay: number])[] = []
  for (let at = 0; at < words.length; at += 2) {
    const match = /^p(\d{1,2}(?:\.\d+)?|100)$/.exec(words[at]!)
    if (match === null) throw new DelaysError(`${quoted(words[at]!)} is no quantile: p0 to p100, such as p99.9`)
    known.push([Number(match[1]) / 100, delayOf(words[at + 1] ?? '')])
  }
  for (const [at, [share, delay]] of known.entries()) {
    const before = known[at - 1]
    if (before !== undefined && (share <= before[0] || delay < before[1]))
      throw new DelaysError('quantiles and their delays must ascend')
  }
  return Array.from({ length: POINTS }, (_, at) => interpolate(known, at / (POINTS - 1)))
}

function interpolate(known: readonly (readonly [number, number])[], share: number): number {
  const next = known.findIndex(([of]) => of >= share)
  if (next === 0) return known[0]![1]
  if (next === -1) return known.at(-1)![1]
  const [[from, low], [to, high]] = [known[next - 1]!, known[next]!]
  return low + ((share - from) / (to - from)) * (high - low)
}
