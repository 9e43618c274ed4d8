/** Settings of the project: operators own them, tenants cannot change them. */
import { AddressGuard } from '../../delivery/address-guard.ts'
import type { Streams } from './notification-event.ts'
import { PROVIDER_FILE } from './shipped-providers.ts'

export interface NotificationSettings {
  /** Template file of SMS providers, below the home folder. */
  readonly providerFile: string
  readonly streams: Streams
  /** Senders of one tenant and channel. */
  readonly sendersMax: number
  readonly eventBytesMax: number
  readonly waitingPerSenderMax: number
  readonly waitingPerTenantMax: number
  readonly waitingMax: number
  readonly deliveredDays: number
  readonly deliveredMax: number
  readonly deadDays: number
  readonly deadMax: number
  /** A delivery is given up after so many attempts, and so long. */
  readonly attemptsMax: number
  readonly giveUpHours: number
  /** Messages of one sender that are sent at once. */
  readonly concurrency: number
  /** Messages of one sender per second; null: no limit. */
  readonly perSecond: number | null
  /** Networks, addresses and names that senders may reach although they are private. */
  readonly allowedAddresses: readonly string[]
}

const NAMES = [
  ...['sms_providers', 'sms_stream', 'email_stream', 'senders_max', 'event_bytes_max', 'waiting_per_sender_max'],
  ...[
    'waiting_per_tenant_max',
    'waiting_max',
    'delivered_days',
    'delivered_max',
    'dead_days',
    'dead_max',
    'attempts_max',
    'give_up_hours',
  ],
  ...['concurrency', 'rate', 'allowed_addresses'],
]

/** Throws RangeError, which names the setting: the API does not open then. */
export function readSettings(given: Readonly<Record<string, unknown>>): NotificationSettings {
  const unknown = Object.keys(given).find(name => !NAMES.includes(name))
  if (unknown !== undefined) throw new RangeError(`the setting ${unknown} is none of ${NAMES.join(', ')}`)
  const number = (name: string, normal: number, least: number, most: number): number => {
    const value = given[name] === undefined ? normal : Number(given[name])
    if (Number.isSafeInteger(value) && value >= least && value <= most) return value
    throw new RangeError(`the setting ${name} is a number from ${least} to ${most}`)
  }
  const text = (name: string, normal: string, pattern: RegExp, form: string): string => {
    const value = given[name] ?? normal
    if (typeof value === 'string' && pattern.test(value)) return value
    throw new RangeError(`the setting ${name} is ${form}`)
  }
  const stream = (name: string, normal: string) => {
    const [streamName = '', version = ''] = text(name, normal, /^[^:\s]{1,200}:[^:\s]{1,50}$/, 'NAME:VERSION').split(
      ':',
    )
    return { streamName, version }
  }
  const rate = number('rate', 0, 0, 100_000)
  return {
    providerFile: text('sms_providers', PROVIDER_FILE, /^(?!.*\.\.)[\w.][\w./-]*$/, 'a path below the home folder'),
    streams: {
      sms: stream('sms_stream', 'id_gov_sms_notify_stream:1.0.0'),
      email: stream('email_stream', 'id_gov_notify_stream:1.0.0'),
    },
    sendersMax: number('senders_max', 50, 1, 1000),
    eventBytesMax: number('event_bytes_max', 65_536, 256, 1_048_576),
    waitingPerSenderMax: number('waiting_per_sender_max', 100_000, 1, 10_000_000),
    waitingPerTenantMax: number('waiting_per_tenant_max', 250_000, 1, 10_000_000),
    waitingMax: number('waiting_max', 1_000_000, 1, 10_000_000),
    deliveredDays: number('delivered_days', 1, 0, 3650),
    deliveredMax: number('delivered_max', 100_000, 0, 10_000_000),
    deadDays: number('dead_days', 30, 0, 3650),
    deadMax: number('dead_max', 100_000, 0, 10_000_000),
    attemptsMax: number('attempts_max', 50, 1, 1000),
    giveUpHours: number('give_up_hours', 24, 1, 720),
    concurrency: number('concurrency', 8, 1, 100),
    perSecond: rate === 0 ? null : rate,
    allowedAddresses: allowedAddresses(given.allowed_addresses ?? []),
  }
}

function allowedAddresses(value: unknown): readonly string[] {
  const isEntry = (entry: unknown): entry is string =>
    typeof entry === 'string' && /^[\w.:-]+(?:\/\d{1,3})?$/.test(entry)
  try {
    if (Array.isArray(value) && value.every(isEntry)) {
      new AddressGuard(value)
      return value
    }
  } catch {
    // A prefix that is too long, or a network that is none.
  }
  throw new RangeError('the setting allowed_addresses is a list of networks (10.1.0.0/16), addresses and host names')
}
