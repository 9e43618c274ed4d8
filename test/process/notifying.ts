/** Gateways with the notification-senders API as real programs, a tenant with a token, and a provider that fails. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { sendCommand } from '../../src/cli/control-client.ts'
import { basicOf, KeyManagerClient } from '../harness/key-manager-client.ts'
import { home, start } from '../harness/operator.ts'
import type { Home, RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'
import { Random } from '../harness/random.ts'

const PROJECT = resolve(import.meta.dirname, '../../conf/apis/NotificationSenders/api.yaml')
const TENANT = 'acme'
const SCOPES = ['senders_create', 'events_publish', 'deliveries_view', 'deliveries_update']
export const CONCURRENCY = 16
/** Requests of the test that are under way at once. */
const PUBLISHERS = 8

/** The project of the package, with private addresses allowed. `toml`: of the deployment. */
export function notifyingHome(toml = ''): Home {
  const at = home()
  const project = readFileSync(PROJECT, 'utf8')
    .replace('allowed_addresses: []', 'allowed_addresses: [127.0.0.1]')
    .replace('concurrency: 8 ', `concurrency: ${CONCURRENCY} `)
  put(at, 'apis/NotificationSenders/api.yaml', project)
  put(at, 'deployment.toml', toml)
  return at
}

export function startNotifying(at: Home): Promise<RunningGateway> {
  return start(at, ['management.enable=true'])
}

/** Makes the tenant and an application. Resolves with its token, which has all scopes of publishers. */
export async function tenantToken({ home: at, program }: RunningGateway): Promise<string> {
  const [, port] = await program.said.until(/^management .*on https:\/\/\S*:(\d+)/m)
  const manager = new KeyManagerClient(at, Number(port))
  await manager.post('/api/am/admin/v4/tenants', basicOf('admin', manager.password), { domain: TENANT })
  const { data } = at
  const of = { tenant: TENANT, owner: 'annabel' }
  const manage = <Result>(request: object) => sendCommand<Result>(data, { command: 'manage', request })
  await manage({ action: 'user add', name: 'annabel', tenant: TENANT, password: 'not-asked-for-7' })
  await manage({ action: 'application create', name: 'shop', ...of })
  await manage({ action: 'key generate', application: 'shop', ...of })
  await manage({ action: 'subscription add', application: 'shop', api: 'NotificationSenders:1.0.0', ...of })
  const scopes = SCOPES.map(scope => `notification_${scope}`)
  const { accessToken } = await manage<{ accessToken: string }>({ action: 'token', application: 'shop', scopes, ...of })
  return accessToken
}

interface Answered {
  readonly status: number
  readonly json: Readonly<Record<string, unknown>>
}

export async function ask({ port }: RunningGateway, token: string, path: string, body?: object): Promise<Answered> {
  const init = {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }
  const url = `http://127.0.0.1:${port}/t/${TENANT}/api/server/v1/notification-senders${path}`
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : { text } }
}

export async function createSmsSender(gateway: RunningGateway, token: string, providerURL: string): Promise<void> {
  const body = { name: 'texts', provider: 'Vonage', providerURL, key: 'k', secret: 's', sender: 'Acme' }
  const { status, json } = await ask(gateway, token, '/sms', body)
  assert.equal(status, 201, JSON.stringify(json))
}

/** Publishes so many events; resolves with the ids of their deliveries once all are accepted. */
export async function publish(gateway: RunningGateway, token: string, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  let next = 0
  const publisher = async (): Promise<void> => {
    while (next < count) {
      const text = `event ${next++}`
      const { status, json } = await ask(gateway, token, '/events', { type: 'sms', recipient: '+15550100', text })
      assert.equal(status, 202, JSON.stringify(json))
      ids.push((json.deliveries as readonly { readonly id: string }[])[0]!.id)
    }
  }
  await Promise.all(Array.from({ length: PUBLISHERS }, publisher))
  return ids
}

/** A provider of which every fifth response is 503, which counts the messages that it has taken. */
export class FailingProvider {
  readonly url: string
  /** By the idempotency key, which is the id of the delivery. */
  readonly taken = new Map<string, number>()
  readonly #failed = new Map<string, number>()
  readonly #close: () => void
  #awaited: (() => void) | null = null

  private constructor(url: string, close: () => void) {
    this.url = url
    this.#close = close
  }

  /** `failuresMax`: of one message, so that its last attempt is not far away. */
  static async listen(failuresMax: number, seed: number): Promise<FailingProvider> {
    const random = new Random(seed)
    const server = createServer((request, response) => {
      request.resume()
      const id = String(request.headers['idempotency-key'])
      const failures = provider.#failed.get(id) ?? 0
      if (failures < failuresMax && random.once(5)) {
        provider.#failed.set(id, failures + 1)
        response.writeHead(503).end()
        return
      }
      provider.taken.set(id, (provider.taken.get(id) ?? 0) + 1)
      response.writeHead(202).end()
      provider.#awaited?.()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const provider: FailingProvider = new FailingProvider(
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`,
      () => {
        server.close()
        server.closeAllConnections()
      },
    )
    return provider
  }

  close(): void {
    this.#close()
  }

  /** Resolves once so many different messages were taken. */
  async until(count: number): Promise<void> {
    const { promise, resolve: reached } = Promise.withResolvers<void>()
    this.#awaited = () => {
      if (this.taken.size >= count) reached()
    }
    this.#awaited()
    await promise
  }

  /** Messages that came again after they were taken. */
  get duplicates(): number {
    return [...this.taken.values()].reduce((sum, times) => sum + times - 1, 0)
  }
}
