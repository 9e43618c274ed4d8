/**
 * How a reactor reports what went wrong: structured events, posted to the primary, which owns the log. A flood of
 * failures must not become a flood of messages, so there is a limit per second, and one line says what it kept back.
 *
 * Field names are those operators know: STATE_DESCRIPTION, INTERNAL_STATE, DIRECTION, CAUSE_OF_ERROR, HTTP_URL,
 * HTTP_METHOD, SOCKET_TIMEOUT, CLIENT_ADDRESS, CORRELATION_ID, CONNECTION; of the target side also ERROR_CODE,
 * TARGET_HOST, TARGET_PORT, REMOTE_ADDRESS. Their values come from the network and are made harmless here.
 */
import { escapeControls } from './escape.ts'
import { redactText, redactUrl } from './redact.ts'

/** Least severe first; those a reactor reports. */
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
type EventLevel = (typeof LEVELS)[number]

type EventFields = Readonly<Record<string, string | number>>

export interface LogEvent {
  readonly level: EventLevel
  readonly event: string
  readonly fields: EventFields
}

/** Lines per second and reactor. */
const PER_SECOND_MAX = 200
const FIELD_CHARS_MAX = 2048

interface EventLogOptions {
  /** As configured; levels that a reactor does not know are more or less severe than all of its own. */
  readonly level: string
  readonly nowMs: () => number
  /** A line was kept back. */
  readonly suppressed: () => void
}

export class EventLog {
  readonly #post: (event: LogEvent) => void
  readonly #options: EventLogOptions
  #threshold: number
  #windowEndsMs = 0
  #posted = 0
  #suppressed = 0

  constructor(post: (event: LogEvent) => void, options: EventLogOptions) {
    this.#post = post
    this.#options = options
    this.#threshold = thresholdOf(options.level)
  }

  /** What is less severe is kept back from now on. */
  setLevel(level: string): void {
    this.#threshold = thresholdOf(level)
  }

  report(level: EventLevel, event: string, fields: EventFields): void {
    if (LEVELS.indexOf(level) < this.#threshold) return
    this.tick()
    if (this.#posted >= PER_SECOND_MAX) {
      this.#suppressed++
      this.#options.suppressed()
      return
    }
    this.#posted++
    this.#post({ level, event, fields: harmless(fields) })
  }

  /** Called from the reactor's timer as well, so that the last flood is accounted for even when silence follows. */
  tick(): void {
    const nowMs = this.#options.nowMs()
    if (nowMs < this.#windowEndsMs) return
    this.#windowEndsMs = nowMs + 1000
    this.#posted = 0
    if (this.#suppressed === 0) return
    const fields = { SUPPRESSED: this.#suppressed }
    this.#suppressed = 0
    this.#post({ level: 'warn', event: 'log lines suppressed', fields })
  }
}

function thresholdOf(level: string): number {
  if (level === 'trace') return 0
  const known = (LEVELS as readonly string[]).indexOf(level)
  return known === -1 ? LEVELS.length : known
}

function harmless(fields: EventFields): EventFields {
  const clean: Record<string, string | number> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'number') clean[name] = value
    else {
      const text = value.length > FIELD_CHARS_MAX ? value.slice(0, FIELD_CHARS_MAX) : value
      clean[name] = escapeControls(name === 'HTTP_URL' ? redactUrl(text) : redactText(text))
    }
  }
  return clean
}
