/**
 * The sections in documented order, and what keys of different sections must agree on. Defaults, types, validation,
 * `explain` and the reference page come from here and from nowhere else.
 */
import { consoleAccess, servletFilter, webAppAccess, webAppListener } from './catalogue/access-control.ts'
import { ai, synapseHandlers, topLevel } from './catalogue/handlers.ts'
import { governance, healthCheck, healthChecker, heartbeat } from './catalogue/health-checks.ts'
import { blockingHttp, blockingHttps, servlet } from './catalogue/inert-transports.ts'
import { accessLog, listener, logging, management } from './catalogue/management.ts'
import { customStore, internalStore, primaryStore, tlsStore, trustStore } from './catalogue/key-stores.ts'
import { mediation } from './catalogue/mediation.ts'
import {
  blockingCustomMessageBuilders,
  blockingCustomMessageFormatters,
  blockingMessageBuilders,
  blockingMessageFormatters,
  customMessageBuilders,
  customMessageFormatters,
  messageBuilders,
  messageFormatters,
} from './catalogue/message-builders.ts'
import { grantTypes, oauth } from './catalogue/oauth.ts'
import { passthruHttp } from './catalogue/passthru-http.ts'
import { passthruHttps } from './catalogue/passthru-https.ts'
import { proxyProfile, securedProxyProfile } from './catalogue/proxies.ts'
import { analytics, analyticsGroup } from './catalogue/analytics.ts'
import {
  gatewayTokenCache,
  jwtClaimCache,
  keyManagerTokenCache,
  publisherRolesCache,
  recentApisCache,
  resourceCache,
  scopesCache,
  tagsCache,
} from './catalogue/caches.ts'
import { cors } from './catalogue/cors.ts'
import { lifecycle } from './catalogue/lifecycle.ts'
import { apimDatabase, sharedDatabase } from './catalogue/databases.ts'
import { environment, gatewayLabels, virtualHost } from './catalogue/environments.ts'
import { backendJwt, claimMapping, jwtIssuer } from './catalogue/jwt.ts'
import { httpClient, keyManager, oauthConfig } from './catalogue/key-manager.ts'
import { notification, openTracer, tokenRevocation } from './catalogue/notices.ts'
import { developerPortal, indexing, sdk, workflow } from './catalogue/portals.ts'
import {
  blockingConditions,
  eventManagement,
  eventSync,
  OWN_SERVICES,
  throttling,
  throttlingGroup,
} from './catalogue/throttling.ts'
import { databaseConfiguration, server, superAdmin } from './catalogue/server.ts'
import { userStore, userStoreProperties } from './catalogue/user-store.ts'
import { ws, wss } from './catalogue/websocket.ts'
import { type Key, keyPath, type Rule, type Section, type Values } from './key.ts'

const ALL = [
  server,
  superAdmin,
  databaseConfiguration,
  apimDatabase,
  sharedDatabase,
  backendJwt,
  jwtIssuer,
  claimMapping,
  environment,
  virtualHost,
  gatewayLabels,
  gatewayTokenCache,
  resourceCache,
  keyManagerTokenCache,
  recentApisCache,
  scopesCache,
  publisherRolesCache,
  jwtClaimCache,
  tagsCache,
  analytics,
  analyticsGroup,
  keyManager,
  httpClient,
  oauthConfig,
  developerPortal,
  cors,
  lifecycle,
  throttling,
  throttlingGroup,
  blockingConditions,
  eventSync,
  eventManagement,
  workflow,
  sdk,
  openTracer,
  tokenRevocation,
  notification,
  indexing,
  primaryStore,
  tlsStore,
  internalStore,
  trustStore,
  passthruHttp,
  passthruHttps,
  proxyProfile,
  securedProxyProfile,
  ws,
  wss,
  blockingHttp,
  blockingHttps,
  servlet,
  listener,
  management,
  accessLog,
  logging,
  messageBuilders,
  blockingMessageBuilders,
  messageFormatters,
  blockingMessageFormatters,
  customMessageBuilders,
  blockingCustomMessageBuilders,
  customMessageFormatters,
  blockingCustomMessageFormatters,
  mediation,
  topLevel,
  synapseHandlers,
  governance,
  heartbeat,
  healthCheck,
  healthChecker,
  oauth,
  grantTypes,
  userStore,
  userStoreProperties,
  consoleAccess,
  webAppAccess,
  servletFilter,
  webAppListener,
  customStore,
  ai,
] as const

type Documented = (typeof ALL)[number]

/** Rows that stand within a row, by the rest of the name of their table. */
type InnerRows<N extends string> = {
  readonly [S in Documented as S['repeated'] extends true
    ? S['name'] extends `${N}.${infer Rest}`
      ? Rest
      : never
    : never]: readonly Values<S['keys']>[]
}

/**
 * One property per section, a list for a repeated one; plain, frozen, and cloneable into another thread. Rows within
 * rows are both: a list of all of them, and a property of the row that each stands in.
 */
export type Configuration = {
  readonly [S in Documented as S['name']]: S['repeated'] extends true
    ? readonly (Values<S['keys']> & InnerRows<S['name']>)[]
    : Values<S['keys']>
}

export type AnySection = Section<string, Readonly<Record<string, Key<unknown>>>>

export const SECTIONS: readonly AnySection[] = ALL as readonly unknown[] as readonly AnySection[]

/** A rule of the catalogue, its keys as whole paths. */
interface CatalogueRule {
  readonly keys: readonly string[]
  /** The repeated table whose rows keep the rule, each for itself; '' for a rule that is about the whole. */
  readonly repeats: string
  readonly must: string
  readonly severity: 'fault' | 'warning'
  /** `row` counts from 0 and is heeded by rules of repeated tables. */
  holds(configuration: Configuration, row: number): boolean
}

/** A port to listen on, before the offset. */
interface Port {
  readonly path: string
  /** 0 where any free port will do, and where nothing listens. */
  of(configuration: Configuration): number
}

type Transport = 'transport.passthru_http' | 'transport.passthru_https' | 'transport.ws' | 'transport.wss'

function portOf(section: Transport): Port {
  return {
    path: `${section}.listener.parameters.port`,
    of: it => (it[section]['listener.enable'] ? it[section]['listener.parameters.port'] : 0),
  }
}

const PORTS: readonly Port[] = [
  portOf('transport.passthru_http'),
  portOf('transport.passthru_https'),
  portOf('transport.ws'),
  portOf('transport.wss'),
  { path: 'management.port', of: it => it.management.port },
  { path: 'management.health_port', of: it => it.management.health_port },
]

/** As the rules of a section name their keys. */
function withoutSection(path: string): string {
  return path.replace(/^transport\.\w+\./, '')
}

function staysPort({ path, of }: Port): CatalogueRule {
  return {
    keys: [path, 'server.offset'],
    repeats: '',
    must: `${withoutSection(path)} and server.offset must add up to 65535 at most`,
    severity: 'fault',
    holds: it => of(it) === 0 || of(it) + it.server.offset <= 65_535,
  }
}

/** The offset is the same for both. */
function differs(one: Port, other: Port): CatalogueRule {
  return {
    keys: [one.path, other.path],
    repeats: '',
    must: 'two listeners must not share a port',
    severity: 'fault',
    holds: it => one.of(it) === 0 || one.of(it) !== other.of(it),
  }
}

/** Two rows that go by the same name: the second is to blame. */
function namedOnce(table: 'apim.gateway.environment' | 'apim.jwt.issuer'): CatalogueRule {
  return {
    keys: [`${table}.name`],
    repeats: table,
    must: 'no two rows may have the same name',
    severity: 'fault',
    holds: (it, row) => it[table].findIndex(({ name }) => name === it[table][row]!.name) === row,
  }
}

const ONE_TOKEN_CACHE: CatalogueRule = {
  keys: ['apim.cache.km_token.enable', 'apim.cache.gateway_token.enable'],
  repeats: '',
  must: 'only one of the token caches may be enabled: what one still remembers the other has forgotten',
  severity: 'fault',
  holds: it => !it['apim.cache.km_token'].enable || !it['apim.cache.gateway_token'].enable,
}

const ONE_TOKEN_IN_A_FIELD: CatalogueRule = {
  keys: ['apim.jwt.header', 'apim.oauth_config.auth_header', 'apim.oauth_config.enable_outbound_auth_header'],
  repeats: '',
  must: "header must not be auth_header where enable_outbound_auth_header passes the client's own on",
  severity: 'fault',
  holds: it =>
    !it['apim.jwt'].enable ||
    !it['apim.oauth_config'].enable_outbound_auth_header ||
    it['apim.jwt'].header.toLowerCase() !== it['apim.oauth_config'].auth_header.toLowerCase(),
}

const A_TRAFFIC_MANAGER: CatalogueRule = {
  keys: ['apim.throttling.url_group.service_url'],
  repeats: 'apim.throttling.url_group',
  must: 'service_url is required on a gateway-worker, which is no traffic manager, here or once in [apim.throttling]',
  severity: 'fault',
  holds: (it, row) =>
    it.server.server_role !== 'gateway-worker' || it['apim.throttling.url_group'][row]!.service_url !== OWN_SERVICES,
}

const ACROSS: readonly CatalogueRule[] = [
  ...PORTS.map(staysPort),
  ...PORTS.flatMap((one, index) => PORTS.slice(0, index).map(other => differs(one, other))),
  namedOnce('apim.gateway.environment'),
  namedOnce('apim.jwt.issuer'),
  ONE_TOKEN_CACHE,
  ONE_TOKEN_IN_A_FIELD,
  A_TRAFFIC_MANAGER,
]

type AnyValues = Readonly<Record<string, unknown>>

function ofSection({ name, repeated }: AnySection, rule: Rule<AnyValues>): CatalogueRule {
  return {
    keys: rule.keys.map(key => keyPath(name, key)),
    repeats: repeated ? name : '',
    must: rule.must,
    severity: rule.severity,
    holds: (configuration, row) => {
      const values = configuration[name as keyof Configuration] as AnyValues | readonly AnyValues[]
      return rule.holds(Array.isArray(values) ? values[row] : values)
    },
  }
}

export const RULES: readonly CatalogueRule[] = [
  ...SECTIONS.flatMap(section => section.rules.map(rule => ofSection(section, rule))),
  ...ACROSS,
]

export interface CatalogueKey {
  readonly section: string
  readonly key: string
  /** `section.key`, as `--set`, `explain` and references spell it. */
  readonly path: string
  readonly definition: Key<unknown>
}

/** Every key in documented order; those of repeated tables once, without a place. */
export function allKeys(): readonly CatalogueKey[] {
  // Asked for each stranger in a file.
  everyKey ??= SECTIONS.flatMap(({ name, keys }) =>
    Object.entries(keys).map(([key, definition]) => ({ section: name, key, path: keyPath(name, key), definition })),
  )
  return everyKey
}

let everyKey: readonly CatalogueKey[] | undefined
