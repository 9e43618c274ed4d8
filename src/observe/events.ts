/**
 * Event log of a reactor or of the control thread: structured events, posted to the primary, which writes them. At
 * most 200 events per second and thread are posted; an event that counts the rest follows.
 *
 * Documented field names: STATE_DESCRIPTION, INTERNAL_STATE, DIRECTION, CAUSE_OF_ERROR, HTTP_URL, HTTP_METHOD,
 * SOCKET_TIMEOUT, CLIENT_ADDRESS, CORRELATION_ID, CONNECTION; on the target side also ERROR_CODE, TARGET_HOST,
 * TARGET_PORT, REMOTE_ADDRESS. Values come from the network and are redacted and escaped here.
 */
import { escapeControls } from './escape.ts'
import { redactText, redactUrl } from './redact.ts'

/** Levels of reactor events, least severe first. */
const LEVELS = ['debug', 'info', 'warn', 'error'] as const
type EventLevel = (typeof LEVELS)[number]

type EventFields = Readonly<Record<string, string | number>>

export interface LogEvent {
  readonly level: EventLevel
  readonly event: string
  readonly fields: EventFields
}

const EVENTS_PER_SECOND_MAX = 200
const FIELD_CHARS_MAX = 2048

interface EventLogOptions {
  /** Configured level; `trace` counts as `debug`, levels above `error` suppress every event. */
  readonly level: string
  readonly nowMs: () => number
  /** Called for each event beyond the rate limit. */
  readonly onSuppressed: () => void
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

  setLevel(level: string): void {
    this.#threshold = thresholdOf(level)
  }

  report(level: EventLevel, event: string, fields: EventFields): void {
    if (LEVELS.indexOf(level) < this.#threshold) return
    this.tick()
    if (this.#posted >= EVENTS_PER_SECOND_MAX) {
      this.#suppressed++
      this.#options.onSuppressed()
      return
    }
    this.#posted++
    this.#post({ level, event, fields: sanitised(fields) })
  }

  /** Posts the count of suppressed events once their second is over. The reactor's timer calls it too. */
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

function sanitised(fields: EventFields): EventFields {
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
