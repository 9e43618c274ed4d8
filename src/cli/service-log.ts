/**
 * Writes what `start` prints where no terminal reads it: lines of JSON in the form of the event log, and nothing else.
 * This writer needs no log, so that it works before the configuration is read, and when the process dies.
 */
import { format } from 'node:util'
import { EXIT_FAILED } from './arguments.ts'
import type { Terminal } from './terminal.ts'

type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal'

const CONSOLE_LEVELS = {
  log: 'info',
  info: 'info',
  debug: 'debug',
  trace: 'debug',
  warn: 'warn',
  error: 'error',
} as const

/** Text on a terminal, else a line of JSON. */
export function writeLine(level: Level, message: string, output: Terminal = process.stderr): void {
  const isTerminal = output.isTTY === true
  const line = isTerminal ? message : JSON.stringify({ level, time: new Date().toISOString(), msg: message })
  output.write(`${line}\n`)
}

/** Turns into lines what Node prints by itself, and what modules of the operator print, in this thread. */
export function catchStrayOutput(): void {
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => writeLine('warn', `${name}: ${message}`))
  process.on('uncaughtException', error => {
    writeLine('fatal', error instanceof Error ? (error.stack ?? error.message) : String(error))
    process.exit(EXIT_FAILED)
  })
  for (const [method, level] of Object.entries(CONSOLE_LEVELS)) {
    console[method as keyof typeof CONSOLE_LEVELS] = (...values) => writeLine(level, format(...values))
  }
}
