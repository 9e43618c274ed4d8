/** The notification-senders module on each database, without a gateway. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseSettings } from '../../../src/database/database-settings.ts'
import { MountedDatabases } from '../../../src/mounted/database-access.ts'
import type { MountedApi, MountedCaller } from '../../../src/mounted/interface.ts'
import { open } from '../../../src/mounted/notifications/notifications-api.ts'
import type { RequestData } from '../../../src/plan/mounted-messages.ts'
import { MountedRequestView } from '../../../src/worker/mounted-request.ts'
import { RequestBody } from '../../../src/worker/request-body.ts'
import { type RealDatabase, realDatabase } from '../../control/registry/real-databases.ts'
import { loadConfiguration } from '../../harness/configuration.ts'

interface LoggedEvent {
  readonly level: string
  readonly event: string
  readonly fields: Readonly<Record<string, string | number>>
}

export interface NotificationFixture {
  readonly api: MountedApi
  readonly database: RealDatabase
  /** Home folder, where the template file may lie. */
  readonly home: string
  readonly logged: readonly LoggedEvent[]
  /** How often the API has asked for its work. */
  readonly wakes: () => number
  /** Another thread, with settings of its own. */
  another(settings?: Readonly<Record<string, unknown>>): Promise<MountedApi>
  ask(method: string, path: string, options?: AskOptions): Promise<Answer>
  remove(): Promise<void>
}

export interface AskOptions {
  readonly body?: unknown
  /** Default: acme, for the path and the caller. */
  readonly tenant?: string
  readonly callerTenant?: string
  readonly fields?: readonly (readonly [string, string])[]
  readonly api?: MountedApi
}

type JsonObject = Readonly<Record<string, unknown>>

export interface Answer {
  readonly status: number
  readonly fields: ReadonlyMap<string, string>
  readonly text: string
  /** {} for another body. */
  readonly json: JsonObject
  /** [] for another body. */
  readonly list: readonly JsonObject[]
}

/** Resolves with the reason where the server is unavailable. */
export async function openNotifications(
  kind: RealDatabase['kind'],
  settings: Readonly<Record<string, unknown>> = {},
): Promise<NotificationFixture | string> {
  const database = await realDatabase(kind)
  if (typeof database === 'string') return database
  const { dataDir } = database
  writeFileSync(join(dataDir, 'deployment.toml'), database.toml)
  const { configuration } = loadConfiguration(dataDir, [], dataDir)
  const plan = {
    settings: databaseSettings(configuration, dataDir).apim,
    folder: dataDir,
    encryptionKey: configuration.encryption.key,
  }
  const home = mkdtempSync(join(tmpdir(), 'sluice-notifications-'))
  const logged: LoggedEvent[] = []
  const opened: { destroy(): Promise<void> }[] = []
  let wakes = 0
  const another = async (changed: Readonly<Record<string, unknown>> = settings): Promise<MountedApi> => {
    const databases = new MountedDatabases(plan)
    opened.push(databases.of('NotificationSenders').kysely)
    return open({
      api: { name: 'NotificationSenders', version: '1.0.0' },
      settings: changed,
      home,
      log: (level, event, fields = {}) => void logged.push({ level, event, fields }),
      database: <Tables>() => databases.of<Tables>('NotificationSenders'),
      secrets: () => databases.secrets(),
      wake: () => void wakes++,
    })
  }
  const api = await another()
  const remove = async (): Promise<void> => {
    for (const kysely of opened) await kysely.destroy()
    await database.remove()
    rmSync(home, { recursive: true })
  }
  const ask = (method: string, path: string, options: AskOptions = {}) =>
    askApi(options.api ?? api, method, path, options)
  return { api, database, home, logged, wakes: () => wakes, another, ask, remove }
}

const CONTEXT = '/t/{tenant}/api/server/v1/notification-senders'

async function askApi(api: MountedApi, method: string, target: string, options: AskOptions): Promise<Answer> {
  const { tenant = 'acme', callerTenant = tenant, body, fields = [['Content-Type', 'application/json']] } = options
  const caller: MountedCaller = {
    ...{ method: 'oauth2', user: 'ann', tenant: callerTenant, isApplication: false, application: null },
    ...{ consumerKey: '', scopes: [], claims: {}, keyType: 'PRODUCTION' },
  }
  const data: RequestData = {
    ...{ method, target, base: CONTEXT.replace('{tenant}', tenant), context: CONTEXT, template: '/*', verb: method },
    ...{ host: 'gw.example', address: '127.0.0.1', correlationId: 'trace-1', caller, fields, scheme: 'https' },
  }
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  const whole = { kind: 'whole', bytes: new TextEncoder().encode(text) } as const
  const response = await api.handle(new MountedRequestView(data, new RequestBody(whole, () => {})))
  const answer = String(response.body ?? '')
  return {
    status: response.status,
    fields: new Map(response.fields ?? []),
    text: answer,
    json: answer.startsWith('{') ? (JSON.parse(answer) as JsonObject) : {},
    list: answer.startsWith('[') ? (JSON.parse(answer) as readonly JsonObject[]) : [],
  }
}

export const VONAGE = {
  provider: 'Vonage',
  providerURL: 'https://sms.example/json',
  key: 'k',
  secret: 's',
  sender: 'Acme',
}
export const MAIL = { smtpServerHost: 'mail.example', smtpPort: 587, fromAddress: 'acme@example.com' }
