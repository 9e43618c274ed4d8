/**
 * The access log in the primary: tries the file before a start, rotates it, and writes lines of reactors to
 * standard output or to syslog.
 */
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import type { Configuration } from '../config/catalogue.ts'
import { LOG_FILE_MODE } from '../observe/access-log-file.ts'
import type { AccessLogSinkCallbacks } from '../observe/access-log-sink.ts'
import { AccessLogStream } from '../observe/access-log-stream.ts'
import type { AccessLogSyslog } from '../observe/access-log-syslog.ts'
import { accessLogPlan, rotationPlan, syslogPlan } from '../plan/access-log-planning.ts'
import { LogRotation } from './log-rotation.ts'

/** A configured file cannot be written or read; the message names it and its key. */
export class CannotWrite extends Error {
  override readonly name = 'CannotWrite'
}

/** O_NONBLOCK: opening a pipe that nobody reads would block for good. */
const APPEND_AT_ONCE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

/** Each reactor opens the access log by itself; the primary tries it first, to refuse the start. */
export function checkAccessLog(configuration: Configuration, dataDir: string): void {
  const { target, path } = accessLogPlan(configuration, dataDir, 1)
  if (target !== 'file') return
  try {
    closeSync(openSync(path, APPEND_AT_ONCE, LOG_FILE_MODE))
  } catch (error) {
    throw new CannotWrite(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}); set access_log.path`)
  }
}

interface OutputOptions extends AccessLogSinkCallbacks {
  readonly configuration: Configuration
  readonly home: string
  readonly dataDir: string
  /** The reactors open the file again. */
  readonly reopen: () => void
  /** True if another process takes over, and rotates the file from now on. */
  readonly isReplaced: () => boolean
}

export class AccessLogOutput {
  readonly #sink: { write(batch: Uint8Array): void }
  readonly #syslog: AccessLogSyslog | null
  readonly #rotation: LogRotation | null

  private constructor(options: OutputOptions, syslog: AccessLogSyslog | null) {
    const rotation = rotationPlan(options.configuration, options.dataDir)
    this.#syslog = syslog
    this.#sink = syslog ?? new AccessLogStream(process.stdout, options)
    this.#rotation = rotation === null ? null : new LogRotation(rotation, options)
  }

  /** Rejects with CannotWrite where the authorities of a TLS receiver cannot be read. */
  static async open(options: OutputOptions): Promise<AccessLogOutput> {
    const plan = syslogPlan(options.configuration, options.home)
    if (plan === null) return new AccessLogOutput(options, null)
    const { accessLogSyslog } = await import('../observe/access-log-syslog.ts')
    const ca = plan.caFile === '' ? null : readAuthorities(plan.caFile)
    return new AccessLogOutput(options, accessLogSyslog({ ...plan, ca }, options))
  }

  /** Takes ownership of the batch. */
  write(batch: Uint8Array): void {
    this.#sink.write(batch)
  }

  /** Resolves once waiting lines are sent, or after a second. */
  async close(): Promise<void> {
    this.#rotation?.stop()
    await this.#syslog?.close()
  }
}

function readAuthorities(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CannotWrite(`${path} cannot be read (${code}); set access_log.syslog.ca_file`)
  }
}
