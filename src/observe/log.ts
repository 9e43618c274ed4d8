/**
 * Writes the event log of the process to stderr, in the primary only: reactors post events (events.ts) and never load
 * the logger. JSON lines; on a terminal one short line per event.
 */
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino'
import { escapeControls } from './escape.ts'
import type { LogEvent } from './events.ts'

export type Log = Logger

/** Bytes that wait for a slow reader of stderr. Further lines are lost, because the primary must not block or grow. */
const PENDING_BYTES_MAX = 4 * 1024 * 1024

const STDERR = 2

export function openLog(level: string, out: DestinationStream = standardError()): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    out,
  )
}

function standardError(): DestinationStream {
  if (process.stderr.isTTY) return new ShortLines(line => process.stderr.write(line))
  return destination({ dest: STDERR, sync: false, maxLength: PENDING_BYTES_MAX })
}

/** Logs an event that a reactor posted. */
export function logEvent(log: Log, reactor: number, { level, event, fields }: LogEvent): void {
  log[level]({ REACTOR: reactor, ...fields }, event)
}

/** `03:56:00.123 WARN  backend timed out  TARGET_HOST=10.0.0.7 CAUSE_OF_ERROR="no data for 180 s"` */
export class ShortLines implements DestinationStream {
  readonly #print: (line: string) => void

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  write(json: string): void {
    const { level, time, msg = '', err, ...fields } = JSON.parse(json) as Record<string, unknown>
    const pairs = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`)
    const head = `${String(time).slice(11, -1)} ${String(level).toUpperCase().padEnd(5)} ${escapeControls(String(msg))}`
    const stack = isError(err) ? `\n${err.stack.split('\n').map(escapeControls).join('\n')}` : ''
    this.#print(`${pairs.length === 0 ? head : `${head}  ${pairs.join(' ')}`}${stack}\n`)
  }
}

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /^[^\s"=]+$/.test(text) ? escapeControls(text) : JSON.stringify(escapeControls(text))
}

function isError(value: unknown): value is { stack: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string'
}
