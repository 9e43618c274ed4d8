/** `api`: the APIs of the running gateway; each of them, and where it stands in its life. */
import type { ApiAnswer, ApiRow, ApisAnswer, LifecycleAnswer } from '../primary/api-desk.ts'
import { ACTIONS, targetOf } from '../config/lifecycle.ts'
import { escapeControls } from '../observe/escape.ts'
import { describeApi } from './api-description.ts'
import { type CliArguments, type CommandOptions, UsageError, usage } from './arguments.ts'
import { askAndTell } from './ask.ts'
import { EXIT_FAILED, EXIT_USAGE } from './exit-codes.ts'
import { sunsetIn } from './sunset.ts'
import { table } from './table.ts'
import { paint, type Terminal } from './terminal.ts'

export async function api(
  args: CliArguments,
  { sunset }: Pick<CommandOptions, 'sunset'>,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  const [word, name, ...action] = args.rest
  if (sunset !== '' && word !== 'lifecycle') throw new UsageError('--sunset is an option of api lifecycle')
  if (word === 'list' && name === undefined) return list(args, output, complaints)
  if (word === 'show' && name !== undefined && action.length === 0) return show(args, name, output, complaints)
  if (word === 'lifecycle' && name !== undefined && action.length > 0) {
    return lifecycle(args, { name, ...actionIn(action.join(' '), sunset) }, output, complaints)
  }
  complaints.write(usage('api'))
  return EXIT_USAGE
}

interface Change {
  readonly name: string
  readonly action: string
  readonly sunsetMs?: number
}

/** Throws UsageError. */
function actionIn(action: string, sunset: string): Omit<Change, 'name'> {
  const target = targetOf(action)
  if (target === undefined) throw new UsageError(`an action is one of ${ACTIONS.join(', ')}`)
  if (sunset === '') return { action }
  if (target !== 'DEPRECATED') throw new UsageError('--sunset goes with Deprecate')
  const sunsetMs = sunsetIn(sunset)
  if (sunsetMs === undefined) throw new UsageError('--sunset is a date, as 2027-06-30 or 2027-06-30T12:00:00Z')
  return { action, sunsetMs }
}

const HEADING = ['API', 'state', 'since', 'sunset', 'declared', 'path', 'hosts', 'transports']

function list(args: CliArguments, output: Terminal, complaints: Terminal): Promise<number> {
  return askAndTell<ApisAnswer>(args.dataDir, { command: 'apis' }, complaints, ({ apis }) => {
    if (args.json) output.write(`${JSON.stringify(apis, null, 2)}\n`)
    else if (apis.length === 0) output.write('no API\n')
    else output.write(table(output, HEADING, apis.map(cellsOf)))
    return 0
  })
}

function cellsOf({ name, version, state, since, sunset, declared, paths, hosts, transports }: ApiRow) {
  const only = transports.length === 1 ? transports[0]! : ''
  const said = declared === state ? '' : declared
  const cells = [`${name}:${version}`, state, moment(since), moment(sunset), said, paths[0]!, hosts.join(' '), only]
  return cells.map(escapeControls)
}

function show(args: CliArguments, name: string, output: Terminal, complaints: Terminal): Promise<number> {
  return askAndTell<ApiAnswer>(args.dataDir, { command: 'api', name }, complaints, answer => {
    output.write(args.json ? `${JSON.stringify(answer, null, 2)}\n` : describeApi(answer, output))
    return 0
  })
}

function lifecycle(args: CliArguments, change: Change, output: Terminal, complaints: Terminal): Promise<number> {
  return askAndTell<LifecycleAnswer>(args.dataDir, { command: 'lifecycle', ...change }, complaints, answer => {
    const { name, version, from, state, sunset, failures } = answer
    if (args.json) output.write(`${JSON.stringify(answer, null, 2)}\n`)
    else {
      const until = sunset === '' ? '' : `, sunset ${moment(sunset)}`
      const said = `${escapeControls(`${name}:${version}`)}: ${from} -> ${state}${until}`
      output.write(`${paint(output, 'green', 'in force')} ${said}\n`)
      for (const failure of failures)
        output.write(`${paint(output, 'red', 'failed')}   ${escapeControls(failure.split('\n')[0]!)}\n`)
    }
    return failures.length === 0 ? 0 : EXIT_FAILED
  })
}

/** `2027-06-30 12:00:00Z`. */
function moment(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z')
}
