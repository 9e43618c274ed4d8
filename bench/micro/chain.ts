/**
 * What each part of the chain of an API costs, in nanoseconds of CPU per exchange and without the kernel:
 * `npx node bench/micro/chain.ts [REPEATS]`. Each variant of `exchange.ts` runs in processes of its own, in turns, and
 * is set against the variant that has one part less. Takes about half a minute for each repeat.
 */
import { fileURLToPath } from 'node:url'
import { pairedRatio } from '../contest/paired-ratio.ts'
import { finished } from '../program.ts'
import { median } from '../results.ts'

const EXCHANGE = fileURLToPath(new URL('exchange.ts', import.meta.url))

interface Variant {
  readonly name: string
  readonly words: readonly string[]
  /** Name of the variant that has one part less. */
  readonly against?: string
}

const VARIANTS: readonly Variant[] = [
  { name: 'core', words: [] },
  { name: 'ten operations looked up', words: ['operations'], against: 'core' },
  { name: 'handler resources', words: ['operations', 'resources'], against: 'ten operations looked up' },
  { name: 'handler CORS, no Origin', words: ['operations', 'resources', 'cors'], against: 'handler resources' },
  { name: 'core, Origin', words: ['origin'] },
  { name: 'whole chain, Origin', words: ['operations', 'resources', 'cors', 'origin'], against: 'core, Origin' },
]

async function nanoseconds({ words }: Variant): Promise<number> {
  const printed = await finished('an exchange', [process.execPath, EXCHANGE, ...words])
  return Number(/^exchange: (\d+) ns/m.exec(printed)?.[1])
}

const repeats = Number(process.argv[2] ?? 5)
const measured = new Map<string, number[]>(VARIANTS.map(({ name }) => [name, []]))
for (let repeat = 0; repeat < repeats; repeat++) {
  for (const variant of repeat % 2 === 0 ? VARIANTS : VARIANTS.toReversed()) {
    measured.get(variant.name)!.push(await nanoseconds(variant))
  }
}
for (const { name, against } of VARIANTS) {
  const own = measured.get(name)!
  const line = `${name.padEnd(28)} ${median(own).toFixed(0).padStart(6)} ns`
  console.log(against === undefined ? line : `${line}   ${difference(own, measured.get(against)!, against)}`)
}

/** In nanoseconds, with the bounds of the ratio applied to the median of the other. */
function difference(own: readonly number[], other: readonly number[], against: string): string {
  const { ratio, low, high } = pairedRatio(own.map((ns, repeat) => [ns / other[repeat]!]))
  const base = median(other)
  const [middle, least, most] = [ratio, low, high].map(it => signed((it - 1) * base))
  return `${middle} ns (95 %: ${least} to ${most}) over ${against}`
}

function signed(ns: number): string {
  return `${ns < 0 ? '' : '+'}${ns.toFixed(0)}`
}
