/** `failures`: lists the exchanges that failed or were slow, shows the timeline of one, and exports them as HAR. */
import { setTimeout as sleep } from 'node:timers/promises'
import { REASON_PHRASES } from '../faults/reason-phrases.ts'
import { FAILURE_SIDES, type RecordedFailure } from '../observe/flight-recorder.ts'
import type { FailuresReport } from '../primary/failure-service.ts'
import { type CliArguments, type CommandOptions, EXIT_FAILED, EXIT_USAGE, UsageError } from './arguments.ts'
import { orFail, sendCommand } from './control-client.ts'
import { harOf } from './failure-har.ts'
import { causeOf, duration, failedState, sideName, statesOf, type StateSpan } from './failure-states.ts'
import { usage } from './help.ts'
import { paint, table, type Terminal } from './terminal.ts'

/** Time between two questions of `--follow`. */
const FOLLOW_MS = 500
const FOLLOW_ROWS = 1000
const CAUSE_CHARS = 72
const PATH_CHARS = 48
/** Columns of the time axis. */
const AXIS_WIDTH = 40
const NAME_WIDTH = 22

/** `signal` ends `--follow`. */
export async function failures(
  args: CliArguments,
  options: CommandOptions,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
  signal?: AbortSignal,
): Promise<number> {
  const [id, ...more] = args.rest
  if (more.length > 0 || (options.follow && (id !== undefined || options.har))) {
    errorOutput.write(usage('failures'))
    return EXIT_USAGE
  }
  const filter = { command: 'failures', ...(id === undefined ? {} : { id }), ...filterOf(options, Date.now()) }
  return orFail(errorOutput, async () => {
    if (options.follow) return await follow(args, filter, output, errorOutput, signal)
    const report = await sendCommand<FailuresReport>(args.dataDir, filter)
    for (const reactor of report.silent) errorOutput.write(`reactor ${reactor} did not answer: it is busy, or hangs\n`)
    if (id !== undefined && report.rows.length === 0) {
      errorOutput.write(`no kept exchange has the id ${id}; sluice failures lists them\n`)
      return EXIT_FAILED
    }
    if (options.har) output.write(`${JSON.stringify(harOf(report.rows), null, 2)}\n`)
    else if (args.json) output.write(`${JSON.stringify(report, null, 2)}\n`)
    else if (id !== undefined) output.write(report.rows.map(row => pictureOf(output, row)).join('\n'))
    else printList(output, report)
    return report.silent.length === 0 ? 0 : EXIT_FAILED
  })
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Throws UsageError. */
function filterOf(options: CommandOptions, nowMs: number): Readonly<Record<string, unknown>> {
  const { api, side, since } = options
  if (side !== '' && !FAILURE_SIDES.some(known => known === side))
    throw new UsageError(`--side is ${FAILURE_SIDES.join(', ')}`)
  return {
    ...(api === '' ? {} : { api }),
    ...(side === '' ? {} : { side }),
    ...numberOf('code', options.code),
    ...numberOf('status', options.status),
    ...numberOf('limit', options.limit),
    ...(since === '' ? {} : { since: readSince(since, nowMs) }),
  }
}

function numberOf(option: 'code' | 'status' | 'limit', given: string): Readonly<Record<string, number>> {
  if (given === '') return {}
  // 5xx is what operators say.
  const digits = option === 'status' ? given.replace(/xx$/i, '') : given
  if (!/^\d{1,9}$/.test(digits)) throw new UsageError(`--${option} is a whole number`)
  return { [option]: Number(digits) }
}

function readSince(given: string, nowMs: number): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(given) ?? []
  const ms = unit === undefined ? Date.parse(given) : nowMs - Number(count) * UNITS[unit]!
  if (Number.isNaN(ms)) throw new UsageError('--since is a time span such as 90s, 10m, 2h, or a time in ISO 8601')
  return Math.max(0, Math.floor(ms))
}

async function follow(
  args: CliArguments,
  filter: Readonly<Record<string, unknown>> & { readonly command: string },
  output: Terminal,
  errorOutput: Terminal,
  signal: AbortSignal | undefined,
): Promise<number> {
  /** The last end that was seen, by reactor: their clocks differ by parts of a millisecond. */
  const sinceOf: number[] = []
  /** Exchanges with that end: under load several share one reading of the clock, and further ones may follow. */
  const lastOf: Set<string>[] = []
  let since = filter.since ?? Date.now()
  let skippedBefore: number | undefined
  while (signal?.aborted !== true) {
    const request = { ...filter, since, sinceOf, limit: FOLLOW_ROWS }
    const { rows, omitted, skipped } = await sendCommand<FailuresReport>(args.dataDir, request)
    // A reactor that was replaced has counted anew.
    const lost = omitted + Math.max(0, skipped - (skippedBefore ?? skipped))
    skippedBefore = skipped
    if (lost > 0) errorOutput.write(`${lost} more failed, and are not shown: too many at once\n`)
    for (const row of rows.toReversed()) {
      const reactor = Number(row.id.split('-')[0])
      while (sinceOf.length <= reactor) sinceOf.push(0)
      if (lastOf[reactor]?.has(row.id)) continue
      if (row.endedMs > sinceOf[reactor]!) {
        sinceOf[reactor] = row.endedMs
        lastOf[reactor] = new Set()
      }
      lastOf[reactor]?.add(row.id)
      output.write(args.json ? `${JSON.stringify(row)}\n` : `${cellsOf(row).filter(Boolean).join('  ')}\n`)
    }
    since = filter.since ?? since
    await sleep(FOLLOW_MS, undefined, signal === undefined ? {} : { signal }).catch(() => {})
  }
  return 0
}

// ---- the list -------------------------------------------------------------------------------------------------------

const HEADING = ['ended', 'id', 'side', 'status', 'code', 'took', 'request', 'cause']

function printList(output: Terminal, { rows, omitted, skipped }: FailuresReport): void {
  if (rows.length === 0) output.write('no exchange is kept that failed or was slow\n')
  else output.write(table(output, HEADING, rows.map(cellsOf)))
  if (omitted > 0) output.write(`and ${omitted} older ones: --limit N shows them\n`)
  if (skipped > 0) output.write(`${skipped} more were not kept: more failed within a second than recorder.size\n`)
}

function cellsOf(row: RecordedFailure): readonly string[] {
  const { id, side, status, code, durationUs, method, path, api } = row
  const request = `${method} ${cut(path, PATH_CHARS)}${api === '' ? '' : ` (${api})`}`
  return [
    new Date(row.endedMs).toISOString().slice(0, 23).replace('T', ' '),
    id,
    sideName(side),
    row.kind === 'reset' ? 'reset' : String(status),
    code === 0 ? '' : String(code),
    duration(durationUs),
    request,
    // The cause alone is short; `failures ID` says what it means.
    cut(row.cause === '' ? causeOf(row) : row.cause, CAUSE_CHARS),
  ]
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

// ---- one timeline ---------------------------------------------------------------------------------------------------

/** The states of both sides on one time axis. */
function pictureOf(output: Terminal, row: RecordedFailure): string {
  const { status, method, path, api, apiVersion, source, target, backend, durationUs, dropped } = row
  const failed = failedState(row)
  const statusLine =
    row.kind === 'reset' ? 'no complete response' : `${status} ${REASON_PHRASES[status] ?? ''}`.trimEnd()
  const whose = api === '' ? 'no API' : `API ${api}:${apiVersion}`
  const axis = `0${duration(durationUs).padStart(AXIS_WIDTH - 1)}`
  const head = [
    `${paint(output, 'bold', `${method} ${path}`)}  ${paint(output, 'red', statusLine)}`,
    `${sideName(row.side)}: ${causeOf(row)}`,
    '',
    `client   ${row.client}, ${source}`,
    ...(target === '' ? [] : [`backend  ${backend}, ${target}`]),
    `${whose}, ${row.requestBodyBytes} bytes to the gateway, ${row.responseBodyBytes} back`,
    `started ${new Date(row.startedMs).toISOString()}, correlation id ${row.correlationId}, id ${row.id}`,
    '',
    paint(
      output,
      'dim',
      `${'at'.padStart(9)}  ${'side'.padEnd(7)}  ${'state'.padEnd(NAME_WIDTH)}${'lasts'.padStart(9)}  ${axis}`,
    ),
  ]
  const states = statesOf(row).map(span => stateLine(output, row, span, isSame(span, failed)))
  const after = [
    ...(dropped > 0 ? [`${dropped} steps are left out in front of the last one`] : []),
    ...bytesLine('request', row.requestBytesUs),
    ...bytesLine('response', row.responseBytesUs),
    ...(row.errorBase === 0
      ? []
      : [`explained by: sluice why ${row.errorBase}${row.code === row.errorBase ? '' : ` ${row.errorState}`}`]),
  ]
  return `${[...head, ...states, ...after].join('\n')}\n`
}

function isSame(one: StateSpan, other: StateSpan | undefined): boolean {
  return one.side === other?.side && one.state === other.state && one.fromUs === other.fromUs
}

function stateLine(output: Terminal, { durationUs }: RecordedFailure, span: StateSpan, hasFailed: boolean): string {
  const { side, state, fromUs, toUs } = span
  const column = (us: number) => Math.min(AXIS_WIDTH - 1, Math.floor((us / Math.max(1, durationUs)) * AXIS_WIDTH))
  const from = column(fromUs)
  const bar = '█'.repeat(Math.max(1, column(toUs) - from + (toUs >= durationUs ? 1 : 0)))
  const painted = hasFailed
    ? paint(output, 'red', bar)
    : side === 'source'
      ? paint(output, 'green', bar)
      : paint(output, 'yellow', bar)
  const mark = hasFailed ? '✗' : ' '
  const texts = [
    duration(fromUs).padStart(9),
    sideName(side).padEnd(7),
    `${state.padEnd(NAME_WIDTH)}${duration(toUs - fromUs).padStart(9)}`,
  ]
  return `${texts.join('  ')} ${mark}${' '.repeat(from)}${painted}`.trimEnd()
}

function bytesLine(direction: string, us: number): readonly string[] {
  return us < 0 ? [] : [`last piece of the ${direction} body after ${duration(us)}`]
}
