/**
 * The parts of a filter chain in CPU nanoseconds per exchange, without the kernel. Variants of `exchange.ts` run in
 * processes of their own in turns; each is compared with the variant with one part less. A repeat takes half a minute.
 *
 *     npx node bench/micro/filter-chain.ts [REPEATS] [EXCHANGES]
 */
import { fileURLToPath } from 'node:url'
import { MeasuredTable } from '../measured-table.ts'
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

const [words = '5', exchanges = '1000000'] = process.argv.slice(2)
const repeats = Number(words)
const VARIANTS: readonly Variant[] = [
  { name: 'core', parts: 'plain' },
  { name: 'lookup of ten operations', parts: 'operations', base: 'core' },
  { name: 'filter resources', parts: 'operations+resources', base: 'lookup of ten operations' },
  { name: 'filter CORS, no Origin', parts: 'operations+resources+cors', base: 'filter resources' },
  { name: 'synchronous handler without a time limit', parts: 'handler+unlimited', base: 'core' },
  { name: 'synchronous handler', parts: 'handler', base: 'synchronous handler without a time limit' },
  { name: 'core, Origin', parts: 'origin' },
  { name: 'full chain, Origin', parts: 'operations+resources+cors+origin', base: 'core, Origin' },
]

async function nanoseconds({ parts }: Variant): Promise<number> {
  const printed = await runToEnd('an exchange', [process.execPath, EXCHANGE, parts, exchanges])
  return (JSON.parse(printed) as { exchangeNs: number }).exchangeNs
}

const measured = new Map<string, number[]>(VARIANTS.map(({ name }) => [name, []]))
for (let repeat = 0; repeat < repeats; repeat++) {
  for (const variant of repeat % 2 === 0 ? VARIANTS : VARIANTS.toReversed()) {
    measured.get(variant.name)!.push(await nanoseconds(variant))
  }
}
const columns = { ns: 0, 'more than': 0, 'by ns': 0, '95 %: from': 0, to: 0 }
const table = new MeasuredTable('An exchange in memory', columns)
for (const { name, base } of VARIANTS) {
  const own = measured.get(name)!
  if (base === undefined) table.row(name, median(own))
  else table.row(name, median(own), base, ...difference(own, measured.get(base)!))
}

/** The difference in nanoseconds: the paired ratio and its confidence interval, applied to the median of the base. */
function difference(own: readonly number[], other: readonly number[]): readonly number[] {
  const { ratio, low, high } = pairedRatio(own.map((ns, repeat) => [ns / other[repeat]!]))
  const baseNs = median(other)
  return [ratio, low, high].map(it => (it - 1) * baseNs)
}
