/**
 * Writes the event log of the process to stderr, in the primary only: reactors post events (events.ts) and never load
 * the logger. JSON lines; on a terminal one short line per event.
 */
import { write, writeSync } from 'node:fs'
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { escapeControls } from './escape.ts'
import type { LogEvent } from './events.ts'

export type Log = Logger

/** Bytes that wait for a slow reader of stderr. Further lines are lost, because the primary must not block or grow. */
const PENDING_BYTES_MAX = 4 * 1024 * 1024

const STDERR = 2
/** Until the next attempt to write to a pipe that is full. */
const RETRY_MS = 100
/** At exit, for a pipe that is full. */
const RETRIES_AT_EXIT = 10

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
  const lines = new JsonLines()
  process.once('exit', () => lines.flushSync())
  return lines
}

/**
 * Writes lines to stderr without waiting for it. Where stderr fails (a closed terminal, a full disk, a pipe without a
 * reader) the lines wait for the next attempt, and nothing else fails. Pino's own stream would end the process, or keep
 * it from ending.
 */
class JsonLines implements DestinationStream {
  #waiting = ''
  /** Bytes that an attempt did not write. */
  #rest: Buffer = Buffer.alloc(0)
  #isWriting = false

  write(line: string): void {
    if (this.#rest.length + this.#waiting.length + line.length > PENDING_BYTES_MAX) return
    this.#waiting += line
    if (!this.#isWriting) this.#attempt()
  }

  #take(): Buffer {
    const bytes = Buffer.concat([this.#rest, Buffer.from(this.#waiting)])
    this.#rest = Buffer.alloc(0)
    this.#waiting = ''
    return bytes
  }

  #attempt(): void {
    const bytes = this.#take()
    this.#isWriting = true
    write(STDERR, bytes, (error, written) => {
      this.#isWriting = false
      this.#rest = bytes.subarray(error === null ? written : 0)
      if (error === null && this.#rest.length + this.#waiting.length > 0) this.#attempt()
      else if (isFull(error)) setTimeout(() => this.#isWriting || this.#attempt(), RETRY_MS)
    })
  }

  /** Before the process ends; `fatal` of pino calls it too. */
  flushSync(): void {
    let bytes = this.#take()
    for (let retries = 0; bytes.length > 0 && retries <= RETRIES_AT_EXIT; ) {
      try {
        bytes = bytes.subarray(writeSync(STDERR, bytes))
      } catch (error) {
        if (!isFull(error)) return
        retries++
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
      }
    }
  }
}

function isFull(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === 'EAGAIN'
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
