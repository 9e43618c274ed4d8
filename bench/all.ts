/**
 * `npm run bench:all`: runs every scenario of bench/README.md with its rounds, and publishes the results there, with
 * charts and history. It takes about five hours; `--quick` checks in half an hour that every scenario works, and
 * publishes nothing.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SCENARIOS } from './scenarios.ts'

/** Rounds and seconds of scenarios by the beginning of their names; the first that fits. */
const PLANS: readonly (readonly [prefix: string, ...words: readonly string[]])[] = [
  ['chain-', '--rounds', '24', '--seconds', '2'],
  ['apis-', '--rounds', '24', '--seconds', '2'],
  ['secured-', '--rounds', '24', '--seconds', '2'],
  ['hot-path-', '--rounds', '12', '--seconds', '2'],
  ['limits-', '--rounds', '24', '--seconds', '1'],
  ['refused', '--rounds', '24', '--seconds', '1'],
  ['mediation-', '--rounds', '24', '--seconds', '2'],
  ['healthcare', '--rounds', '3', '--seconds', '2'],
  ['', '--rounds', '5', '--seconds', '3'],
]
const RUN = fileURLToPath(new URL('./run.ts', import.meta.url))

/** The command lines of all scenarios, in the order of the tables. */
export function commandLines(isQuick: boolean): readonly (readonly string[])[] {
  // The open loop needs the peaks of a closed one, which a run measures itself.
  const names = Object.keys(SCENARIOS).filter(name => !name.startsWith('open-'))
  const planned = names.map(name => {
    const [, ...words] = PLANS.find(([prefix]) => name.startsWith(prefix))!
    return ['--scenario', name, ...(isQuick ? ['--quick'] : [...words, '--write'])]
  })
  return isQuick ? planned : [...planned, ['--scenario', 'bare', '--open-loop', '--write']]
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
  const lines = commandLines(values.quick)
  const failed: string[] = []
  for (const [index, words] of lines.entries()) {
    console.error(`${index + 1} of ${lines.length}: npm run bench -- ${words.join(' ')}`)
    const { status } = spawnSync(process.execPath, [RUN, ...words], { stdio: 'inherit' })
    if (status !== 0) failed.push(words[1]!)
  }
  if (failed.length > 0) {
    console.error(`Without a result: ${failed.join(', ')}`)
    process.exitCode = 1
  }
}
