/** Proposed changes of `deployment.toml`, each with the effect that was measured. */
import type { KnobResult, TuneResult } from './search.ts'
import type { TomlChange } from './toml-edit.ts'

export interface Proposal extends TomlChange {
  readonly current: number
  readonly reason: string
}

export function proposalsOf({ knobs }: TuneResult, sectionOf: (path: string) => string): readonly Proposal[] {
  return knobs
    .filter(({ verdict }) => verdict === 'change')
    .flatMap(knob =>
      [knob.key, ...knob.others].map(path => {
        const section = sectionOf(path)
        const change = { section, key: path.slice(section.length + 1), value: knob.optimum }
        return { ...change, current: knob.current, reason: gainText(knob) }
      }),
    )
}

/** `throughput x 1.52 (95 %: 1.48 to 1.57)` */
function gainText({ gain: { ratio, low, high } }: KnobResult): string {
  return `throughput x ${ratio.toFixed(2)} (95 %: ${low.toFixed(2)} to ${high.toFixed(2)})`
}

/** Why a size is proposed, or is not. */
export function verdictText(knob: KnobResult): string {
  const { verdict, optimum, current } = knob
  if (verdict === 'change') return `${current} -> ${optimum}: ${gainText(knob)}`
  if (verdict === 'undecided')
    return `${optimum} may be as good or better, and the repeats do not decide it: ${gainText(knob)}`
  return optimum === current
    ? `${current} stays: no other value is better`
    : `${current} stays: ${optimum} is as good, ${gainText(knob)}`
}

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
