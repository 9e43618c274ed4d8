/**
 * The parts of a filter chain in CPU nanoseconds per exchange, without the kernel. Variants of `exchange.ts` run in
 * processes of their own in turns; each is compared with the variant with one part less. A repeat takes half a minute.
 *
 *     npx node bench/micro/filter-chain.ts [REPEATS]
 */
import { fileURLToPath } from 'node:url'
import { pairedRatio } from '../paired/paired-ratio.ts'
import { runToEnd } from '../program.ts'
import { median } from '../results.ts'

const EXCHANGE = fileURLToPath(new URL('exchange.ts', import.meta.url))

interface Variant {
  readonly name: string
  /** As `exchange.ts` takes them. */
  readonly parts: string
  /** Name of the variant with one part less. */
  readonly base?: string
}

const VARIANTS: readonly Variant[] = [
  { name: 'core', parts: 'plain' },
  { name: 'lookup of ten operations', parts: 'operations', base: 'core' },
  { name: 'filter resources', parts: 'operations+resources', base: 'lookup of ten operations' },
  { name: 'filter CORS, no Origin', parts: 'operations+resources+cors', base: 'filter resources' },
  { name: 'core, Origin', parts: 'origin' },
  { name: 'full chain, Origin', parts: 'operations+resources+cors+origin', base: 'core, Origin' },
]

async function nanoseconds({ parts }: Variant): Promise<number> {
  const printed = await runToEnd('an exchange', [process.execPath, EXCHANGE, parts])
  return (JSON.parse(printed) as { exchangeNs: number }).exchangeNs
}

const repeats = Number(process.argv[2] ?? 5)
const measured = new Map<string, number[]>(VARIANTS.map(({ name }) => [name, []]))
for (let repeat = 0; repeat < repeats; repeat++) {
  for (const variant of repeat % 2 === 0 ? VARIANTS : VARIANTS.toReversed()) {
    measured.get(variant.name)!.push(await nanoseconds(variant))
  }
}
for (const { name, base } of VARIANTS) {
  const own = measured.get(name)!
  const line = `${name.padEnd(28)} ${median(own).toFixed(0).padStart(6)} ns`
  console.log(base === undefined ? line : `${line}   ${difference(own, measured.get(base)!, base)}`)
}

/** The difference in nanoseconds: the paired ratio and its confidence interval, applied to the median of the base. */
function difference(own: readonly number[], other: readonly number[], base: string): string {
  const { ratio, low, high } = pairedRatio(own.map((ns, repeat) => [ns / other[repeat]!]))
  const baseNs = median(other)
  const [middle, least, most] = [ratio, low, high].map(it => signed((it - 1) * baseNs))
  return `${middle} ns (95 %: ${least} to ${most}) over ${base}`
}

function signed(ns: number): string {
  return `${ns < 0 ? '' : '+'}${ns.toFixed(0)}`
}
