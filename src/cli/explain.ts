/** `explain`: the values in effect, where each was set, and all there is to know about one key. */
import { describe, printable } from '../config/fault.ts'
import { FREE_NAME } from '../config/key.ts'
import { examine } from '../config/load.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import { type CliArguments, type CommandOptions, UsageError, usage } from './arguments.ts'
import { EXIT_CONFIGURATION, EXIT_USAGE } from './exit-codes.ts'
import { asWord, choose, noSuchKey } from './explain-choice.ts'
import { absence, explainKey, factsOf, idleNote, isChanged, readable, type Situation } from './explain-key.ts'
import { machineFor } from './machine.ts'
import { paint, type Terminal } from './terminal.ts'

type Options = Pick<CommandOptions, 'changed' | 'burst'>

export async function explain(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
  options: Options = { changed: false, burst: '' },
): Promise<number> {
  const [asked = '', ...more] = args.rest
  if (more.length > 0) {
    complaints.write(usage('explain'))
    return EXIT_USAGE
  }
  const wanted = asWord(asked)
  const burst = burstOf(options.burst)
  const { keys, faults, configuration } = examine(args.home, args.sets, args.dataDir)
  const byPath = new Map(keys.map(key => [key.path, key]))
  const sections = [...new Set(keys.map(key => key.section))]
  const surroundings = { home: args.home, data: args.dataDir, folder: args.home }
  const machine = machineFor(configuration)
  const situation = { keys, faults, configuration, byPath, sections, surroundings, machine, burst }
  const { chosen, named } = choose(keys, wanted)
  if (chosen.length === 0) {
    complaints.write(noSuchKey(keys, wanted))
    return EXIT_USAGE
  }
  const listed = options.changed ? chosen.filter(key => isChanged(key, situation)) : chosen
  const single = named && chosen.length === 1
  if (args.json) output.write(`${JSON.stringify(asJson(listed, single, situation), null, 2)}\n`)
  else if (listed.length === 0) output.write('nothing differs from the defaults\n')
  else if (named && listed.length <= NAMESAKES_MAX) for (const key of listed) explainKey(output, key, situation)
  else listAll(output, listed, situation)
  if (faults.length === 0) return 0
  for (const fault of faults) complaints.write(`${paint(complaints, 'red', 'fault')}  ${describe(fault)}\n`)
  return EXIT_CONFIGURATION
}

const USUAL_BURST = 1000

function burstOf(given: string): number {
  if (given === '') return USUAL_BURST
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new UsageError('--burst is a whole number, 1 to 999999999')
  return Number(given)
}

/** One object where one key was asked for; null where only a change was, and there is none. */
function asJson(listed: readonly ResolvedKey[], single: boolean, situation: Situation): unknown {
  const facts = listed.map(key => factsOf(key, situation))
  return single ? (facts[0] ?? null) : facts
}

/** So many keys of one name are told about in full; of more a list is of more use. */
const NAMESAKES_MAX = 3

function listAll(output: Terminal, keys: readonly ResolvedKey[], situation: Situation): void {
  for (const [section, own] of Map.groupBy(keys, key => key.section)) {
    const missing = commonAbsence(own)
    output.write(`${titleOf(output, section, own[0]!, missing)}\n`)
    const isIdle = idleNote(own[0]!) !== ''
    const nameWidth = Math.max(...own.map(key => key.key.length))
    const valueWidth = Math.min(40, Math.max(...own.map(key => readable(key).length)))
    for (const key of own) {
      const remarks = remarksOn(key, isIdle, missing)
      const cells = [key.key.padEnd(nameWidth), readable(key).padEnd(valueWidth), remarks.filter(Boolean).join(' ')]
      const isNews = isChanged(key, situation)
      const mark = isNews ? '*' : key.where === '' ? ' ' : '='
      const line = printable(cells.join('  ').trimEnd())
      output.write(`${mark} ${paint(output, isNews ? 'green' : 'dim', line)}\n`)
    }
    output.write('\n')
  }
  output.write('* differs from its default, = set to its default; everything else is set nowhere\n')
}

function titleOf(output: Terminal, section: string, first: ResolvedKey, missing: string): string {
  const isTable = missing !== '' && !first.key.includes(FREE_NAME)
  const name = isTable ? `[[${section}]]` : `[${printable(section)}]`
  const notes = [idleNote(first), missing === '' ? '' : `${missing}: these are the defaults of one`]
  const title = paint(output, 'bold', section === '' ? 'above the first section' : name)
  return [title, notes.filter(Boolean).join('; ')].filter(Boolean).join('  ')
}

/** Why there is none of these keys; '' where there is one, or the reasons differ. */
function commonAbsence(keys: readonly ResolvedKey[]): string {
  const reasons = new Set(keys.map(absence))
  return reasons.size === 1 ? [...reasons][0]! : ''
}

function remarksOn(key: ResolvedKey, isIdle: boolean, missing: string): readonly string[] {
  const { inertReason, required } = key.definition
  return [
    key.where,
    key.faulty ? 'FAULTY, this is the default' : '',
    missing === '' ? absence(key) : required ? 'required' : '',
    !isIdle && inertReason !== '' ? '(inert)' : '',
  ]
}
