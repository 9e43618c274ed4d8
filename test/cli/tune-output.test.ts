/** What `tune` prints for people: the curve over the clients, sizes, latencies, and the proposed changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printResult } from '../../src/cli/tune-output.ts'
import { proposalsOf } from '../../src/tune/proposals.ts'
import { tune } from '../../src/tune/search.ts'
import { Transcript } from '../config/temporary-home.ts'
import { SimulatedSystem } from '../tune/simulated-system.ts'

const SECTION = 'transport.passthru_http'
const KEY = `${SECTION}.http.max.connection.per.host.port`

async function printed(current: number, clients: number, p99Ms: number): Promise<string> {
  const system = new SimulatedSystem(({ [KEY]: most = 1 }, count) => 50 * Math.min(most, count))
  const knob = { key: KEY, others: [], unit: 'connections', values: [1, 2, 4, 8, 16], current }
  const result = await tune(system, [knob], { seed: 1, clients, repeats: 3, p99Ms, progress: () => {} })
  const output = new Transcript()
  const proposals = proposalsOf(result, () => SECTION)
  printResult(output, result, proposals)
  return output.text
}

test('the curve, the sizes with their bars, the latencies, the knee and the diff with its reason', async () => {
  const text = await printed(2, 16, 5)
  assert.match(
    text,
    /^seed 1, 3 repeats in random order, 16 clients\nthe load generator does .*: it was not the limit\n/,
  )
  const curve = /Throughput by clients\n((?: +\d+ {2}[█ ]{40} .*\n)+)contention/.exec(text)?.[1]
  assert.deepEqual(curve?.match(/^ *\d+/gm)?.map(Number), [1, 2, 4, 8, 16], 'a row for each number of clients')
  assert.match(text, / {4}16 {2}█{39,40} *\d+\/s {2}p99 .* best\n/)
  assert.match(text, / {5}2 {2}█{5} +\d+\/s {2}p99 .* current\n/)
  assert.match(text, /Latency from the intended send time, open loop\npeak /)
  for (const share of ['30 %', '50 %', '70 %', '80 %', '90 %', '95 %']) assert.ok(text.includes(`\n${share}`), share)
  assert.match(
    text,
    /\/s \(\d\d % of the peak\) keeps a 99th percentile of 5 ms with at most 1 % of the requests failing\n/,
  )
  assert.match(
    text,
    /Proposed changes\n \[transport\.passthru_http\]\n-".*" = 2\n\+".*" = 16 {2}# throughput x 8\.\d\d \(/,
  )
  assert.doesNotMatch(text, /NaN|undefined|Infinity/)
})

test('without a better size the output says so; one client is singular', async () => {
  const text = await printed(1, 1, 0)
  assert.match(text, /^seed 1, 3 repeats in random order, 1 client\n/)
  assert.match(text, /Proposed changes\nnone: no other size is seen to be better by more than 3 %\n$/)
  assert.doesNotMatch(text, /keeps a 99th/)
})
