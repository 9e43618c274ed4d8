/** Routes of the dashboard: its page with scripts and styles, sign-in, server-sent events, configuration. */
import { type Context, Hono } from 'hono'
import type { ConfigurationRow, DashboardPart, DashboardParts } from '../../plan/dashboard-messages.ts'
import { RegistryUnavailable } from '../registry/registry-errors.ts'
import { authorizationErrorResponse, seeOther } from '../oauth/authorization-endpoint.ts'
import type { KeyManager } from '../oauth/key-manager.ts'
import { describeCodes } from './codes.ts'
import { DashboardFeed } from './feed.ts'
import { describeMachines } from './machines.ts'
import { PAGE, SIGN_IN, SignIn, type SignedIn } from './sign-in.ts'

/** A file of the page. */
export interface PageFile {
  readonly type: string
  readonly text: string
  /** Strong validator (RFC 9110 8.8.3), with its quotes. */
  readonly tag: string
}

interface DashboardOptions {
  readonly manager: KeyManager
  /** The page is served; read with each request, because a reload may change it. */
  readonly isOpen: () => boolean
  readonly roles: () => readonly string[]
  readonly files: ReadonlyMap<string, PageFile>
  readonly gather: (parts: readonly DashboardPart[]) => Promise<DashboardParts>
  readonly configuration: () => Promise<readonly ConfigurationRow[]>
  /** Milliseconds of a round; for tests. */
  readonly roundMs?: number
}

export interface Dashboard {
  readonly fetch: Hono['fetch']
  /** Ends all streams, which would keep the listener from closing. */
  close(): void
}

const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
].join('; ')
const PAGE_FIELDS = {
  'Content-Security-Policy': POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
  // The validator decides: a new version of the gateway has other files.
  'Cache-Control': 'no-cache',
}

export function openDashboard(options: DashboardOptions): Dashboard {
  const { manager, isOpen, files } = options
  const signIn = new SignIn(manager, options.roles)
  const feed = new DashboardFeed(options)
  const app = new Hono()
  app.onError((error, context) => {
    if (error instanceof RegistryUnavailable) return context.text('the registry is unavailable\n', 503)
    return authorizationErrorResponse(manager, error, context)
  })
  app.use(async (context, next) => {
    if (isOpen()) return next()
    return context.text('the dashboard is switched off (management.dashboard)\n', 404)
  })
  app.get(PAGE, async context => {
    return (await signIn.find(context)) === null ? seeOther(SIGN_IN) : fileResponse(context, files.get('index.html'))
  })
  app.get(`${PAGE}/`, () => seeOther(PAGE))
  app.get(`${PAGE}/files/:name`, context => fileResponse(context, files.get(context.req.param('name'))))
  app.get(SIGN_IN, context => signIn.show(context))
  app.post(SIGN_IN, context => signIn.post(context))
  app.post(`${PAGE}/sign-out`, async context => {
    const user = await signIn.find(context)
    if (user === null) return seeOther(SIGN_IN)
    // The cookie keeps other sites out, but not other ports of this host.
    if (!signIn.isOwnPage(context)) return context.text('the request comes from another page\n', 403)
    feed.end(user.session)
    return signIn.end(context)
  })
  const guarded = (path: string, respond: (context: Context, user: SignedIn) => Promise<Response> | Response): void => {
    app.get(`${PAGE}/${path}`, async context => {
      const user = await signIn.find(context)
      return user === null ? context.json({ error: 'sign in first' }, 401) : respond(context, user)
    })
  }
  guarded('machines', (context, { name }) => {
    return context.json({ user: name, machines: describeMachines(), ...describeCodes() })
  })
  guarded('history', async context => context.json((await options.gather(['history'])).history ?? {}))
  guarded('configuration', async context => context.json({ keys: await options.configuration() }))
  guarded('events', (context, user) => {
    // hono serves HEAD by GET, and nobody would read or end the stream.
    if (context.req.method !== 'GET') return context.json({ error: 'only GET' }, 405, { Allow: 'GET' })
    const viewer = { session: user.session, isAllowed: async () => isOpen() && signIn.holds(context, user) }
    const stream = feed.open(viewer)
    if (stream === null) return context.json({ error: 'too many viewers' }, 503)
    return new Response(stream, { headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' } })
  })
  return { fetch: app.fetch, close: () => feed.close() }
}

function fileResponse(context: Context, file: PageFile | undefined): Response {
  if (file === undefined) return context.text('no such file\n', 404)
  const headers = { ...PAGE_FIELDS, ETag: file.tag }
  if (context.req.header('if-none-match') === file.tag) return new Response(null, { status: 304, headers })
  return new Response(file.text, { headers: { ...headers, 'Content-Type': file.type } })
}
