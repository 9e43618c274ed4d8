/** Key manager behind a TLS listener, with a registry in its own folder; one per test file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Configuration } from '../../../src/config/catalogue.ts'
import type { IssuerKeys } from '../../../src/auth/records.ts'
import { keyManagerApp } from '../../../src/control/oauth/app.ts'
import { KeyManager, type KeyManagerOptions, type VerifiedAssertion } from '../../../src/control/oauth/key-manager.ts'
import type { Client } from '../../../src/control/registry/entities.ts'
import { Registry } from '../../../src/control/registry/registry.ts'
import { allocateMetrics, MetricsColumn } from '../../../src/observe/metrics.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import { CA, SERVER } from '../../harness/certificates.ts'

const TENANT = 'carbon.super'
export const USER = { name: 'alice', password: 'wonder-Land-7' }
export const ADMIN_PASSWORD = 'over-the-Top-9'

/** Role sets of scopes, as APIs bind them. */
const SCOPES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'orders:read': [['Internal/subscriber']],
  'orders:write': [['admin']],
  'orders:any': [],
}

interface Started {
  readonly client: Client
  readonly secret: string
}

export class RunningKeyManager implements AsyncDisposable {
  readonly manager: KeyManager
  readonly configuration: Configuration
  readonly registry: Registry
  readonly origin: string
  readonly folder: string
  readonly logged: string[]
  readonly keysTold: IssuerKeys[]
  readonly #end: () => Promise<void>
  readonly #agent = new Agent({ connect: { ca: CA.cert } })

  constructor(
    parts: Pick<
      RunningKeyManager,
      'manager' | 'configuration' | 'registry' | 'origin' | 'folder' | 'logged' | 'keysTold'
    >,
    end: () => Promise<void>,
  ) {
    this.manager = parts.manager
    this.configuration = parts.configuration
    this.registry = parts.registry
    this.origin = parts.origin
    this.folder = parts.folder
    this.logged = parts.logged
    this.keysTold = parts.keysTold
    this.#end = end
  }

  /** `fetch` that trusts the test CA and follows no redirect. */
  readonly fetch = (url: string, options: object = {}): Promise<Response> =>
    undiciFetch(url, { redirect: 'manual', ...options, dispatcher: this.#agent }) as unknown as Promise<Response>

  /** Posts a form. */
  async post(
    path: string,
    fields: Readonly<Record<string, string>> | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; headers: Headers; body: Record<string, unknown>; text: string }> {
    const answer = await this.fetch(`${this.origin}${path}`, {
      method: 'POST',
      body: typeof fields === 'string' ? fields : String(new URLSearchParams(fields)),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
    const text = await answer.text()
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : {}, text }
  }

  /** Registers a client, for all grants unless overridden. */
  client(about: Partial<Client> = {}): Promise<Started> {
    return this.registry.clients.create({
      name: 'Shop',
      applicationId: null,
      keyType: 'PRODUCTION',
      owner: 'admin',
      tenant: TENANT,
      grants: ['client_credentials', 'password', 'refresh_token', 'authorization_code', 'jwt_bearer'],
      redirectUris: ['https://shop.example/back'],
      isPublic: false,
      tokenType: 'JWT',
      validityS: 0,
      ...about,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.close()
    await this.#end()
  }
}

interface Options {
  readonly sets?: readonly string[]
  readonly now?: () => number
  /** Files of the configuration folder. */
  readonly files?: Readonly<Record<string, string>>
  readonly verifyAssertion?: (assertion: string) => Promise<VerifiedAssertion | null>
}

export async function startKeyManager({
  sets = [],
  now = Date.now,
  files = {},
  verifyAssertion = async () => null,
}: Options = {}): Promise<RunningKeyManager> {
  const folder = await mkdtemp(join(tmpdir(), 'key-manager-'))
  for (const [name, text] of Object.entries({ 'deployment.toml': '', ...files }))
    await writeFile(join(folder, name), text)
  let listen: ReturnType<typeof getRequestListener> = async () => {}
  const server = createServer(SERVER, (request, response) => void listen(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  // A failed start must not keep the process alive.
  server.unref()
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`
  const issuer = `${origin}/oauth2/token`
  const own = [`oauth.oidc.id_token.issuer=${issuer}`, `super_admin.password=${ADMIN_PASSWORD}`]
  const { configuration } = loadConfiguration(folder, [...own, ...sets])
  const registry = await Registry.open({ configuration, dataDir: folder, issuer, nowMs: now })
  const account = { name: USER.name, tenant: TENANT, roles: ['Internal/subscriber'], claims: CLAIMS }
  await registry.users.create(account, USER.password)
  const logged: string[] = []
  const keysTold: IssuerKeys[] = []
  const metrics = allocateMetrics(1)
  const options: KeyManagerOptions = {
    registry,
    folder,
    dataDir: folder,
    origin,
    rolesOfScope: scope => SCOPES[scope] ?? null,
    verifyAssertion,
    metrics: new MetricsColumn(metrics, 0),
    publishKeys: keys => void keysTold.push(keys),
    report: (level, event, fields) => void logged.push(`${level} ${event} ${JSON.stringify(fields)}`),
    nowMs: now,
  }
  const manager = await KeyManager.open(options, configuration)
  const app = keyManagerApp(manager)
  listen = getRequestListener(request => {
    const clientAddress = request.headers.get('x-forwarded-for') ?? '127.0.0.1'
    return app.fetch(request, { clientAddress })
  })
  return new RunningKeyManager({ manager, configuration, registry, origin, folder, logged, keysTold }, async () => {
    manager.close()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    await registry.close()
    await rm(folder, { recursive: true })
  })
}

const CLAIMS = {
  'http://wso2.org/claims/emailaddress': 'alice@shop.example',
  'http://wso2.org/claims/givenname': 'Alice',
  'http://wso2.org/claims/department': 'Sales',
  // A name that every object has.
  constructor: 'Daimler',
}

/** A browser: keeps cookies, fills forms, and follows redirects within the key manager. */
export class Browser {
  readonly #keyManager: RunningKeyManager
  readonly #cookies = new Map<string, string>()

  constructor(keyManager: RunningKeyManager) {
    this.#keyManager = keyManager
  }

  get cookies(): ReadonlyMap<string, string> {
    return this.#cookies
  }

  async open(
    url: string | URL,
    form?: Readonly<Record<string, string>>,
    origin = this.#keyManager.origin,
  ): Promise<BrowserPage> {
    const answer = await this.#keyManager.fetch(String(url), {
      method: form === undefined ? 'GET' : 'POST',
      headers: {
        cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form !== undefined && {
          'content-type': 'application/x-www-form-urlencoded',
          origin,
        }),
      },
      ...(form !== undefined && { body: String(new URLSearchParams(form)) }),
    })
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      this.#cookies.set(name, value)
    }
    const location = answer.headers.get('location') ?? ''
    return { status: answer.status, headers: answer.headers, text: await answer.text(), location }
  }

  /** Submits the form of a page with these fields. */
  submit(page: BrowserPage, fields: Readonly<Record<string, string>>, origin?: string): Promise<BrowserPage> {
    const action = /action="([^"]+)"/.exec(page.text)?.[1] ?? ''
    const hidden = page.text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)
    const own = Object.fromEntries([...hidden].map(([, name, value]) => [name!, value!.replaceAll('&amp;', '&')]))
    return this.open(`${this.#keyManager.origin}${action}`, { ...own, ...fields }, origin)
  }

  /** Logs in and consents; returns the redirect to the client. */
  async allow(url: string | URL): Promise<URL> {
    const login = await this.open(url)
    const consent = await this.submit(login, { username: USER.name, password: USER.password })
    const { location } = await this.submit(consent, { decision: 'allow' })
    return new URL(location)
  }
}

interface BrowserPage {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly location: string
}

export function basic(name: string, secret: string): { readonly authorization: string } {
  const encoded = [name, secret].map(encodeURIComponent).join(':')
  return { authorization: `Basic ${Buffer.from(encoded).toString('base64')}` }
}
