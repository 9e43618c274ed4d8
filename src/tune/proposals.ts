/** Proposed changes of `deployment.toml`, each with the effect that was measured. */
import type { TuneResult } from './search.ts'
import type { KnobResult } from './verdict.ts'

/** A key of `deployment.toml`. */
export interface TomlChange {
  /** `transport.passthru_http` */
  readonly section: string
  /** As in `section.key`; a key with dots is quoted in the file. */
  readonly key: string
  readonly value: number
}

export interface Proposal extends TomlChange {
  readonly current: number
  readonly reason: string
}

export function proposalsOf({ knobs }: TuneResult, sectionOf: (path: string) => string): readonly Proposal[] {
  return knobs
    .filter(({ verdict }) => verdict === 'change')
    .flatMap(knob =>
      [{ key: knob.key, current: knob.current }, ...knob.others].map(({ key, current }) => {
        const section = sectionOf(key)
        const change = { section, key: key.slice(section.length + 1), value: knob.optimum }
        return { ...change, current, reason: gainText(knob) }
      }),
    )
}

/** `throughput x 1.52 (95 %: 1.48 to 1.57)`, and what fails where that differs. */
function gainText({ gain: { ratio, low, high }, points, optimum, current }: KnobResult): string {
  const failedWith = (wanted: number): number => points.find(({ value }) => value === wanted)!.failed
  const [then, now] = [percent(failedWith(optimum)), percent(failedWith(current))]
  const failures = then === now ? '' : `, ${then} of the requests fail (now ${now})`
  return `throughput x ${ratio.toFixed(2)} (95 %: ${low.toFixed(2)} to ${high.toFixed(2)})${failures}`
}

/** Why a size is proposed, or is not. */
export function verdictText(knob: KnobResult): string {
  const missed = knob.meetsTarget ? '' : '; no value keeps the target for the 99th percentile'
  return `${reasonText(knob)}${missed}`
}

function reasonText(knob: KnobResult): string {
  const { verdict, points } = knob
  const [optimum, current] = [valueText(knob.optimum), valueText(knob.current)]
  if (verdict === 'same') {
    const hidden = 1 - Math.min(...points.map(({ ofBest }) => ofBest.low))
    return `no difference seen, ${current} stays: one of less than ${percent(hidden)} would not show in these repeats`
  }
  if (verdict === 'change') return `${current} -> ${optimum}: ${gainText(knob)}`
  if (verdict === 'undecided')
    return `${optimum} may be as good or better, and the repeats do not decide it: ${gainText(knob)}`
  return knob.optimum === knob.current
    ? `${current} stays: no other value is better`
    : `${current} stays: ${optimum} is as good, ${gainText(knob)}`
}

export function valueText(value: number): string {
  return value < 0 ? 'no limit' : String(value)
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

/** Why nothing is proposed. */
export const NO_PROPOSAL = 'none: no other size is seen to be better by more than 3 %'

/** `diff` of the file, section by section. */
export function diffText(proposals: readonly Proposal[]): string {
  return [...Map.groupBy(proposals, ({ section }) => section)]
    .flatMap(([section, own]) => [
      ` [${section}]`,
      ...own.flatMap(({ key, current, value, reason }) => {
        const name = key.includes('.') ? `"${key}"` : key
        return [`-${name} = ${current}`, `+${name} = ${value}  # ${reason}`]
      }),
    ])
    .map(line => `${line}\n`)
    .join('')
}
