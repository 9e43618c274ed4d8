/**
 * The sections in documented order, and what keys of different sections must agree on. Defaults, types, validation,
 * `explain` and the reference page come from here and from nowhere else.
 */
import { blockingHttp, blockingHttps, servlet } from './catalogue/inert-transports.ts'
import { accessLog, listener, logging, management } from './catalogue/management.ts'
import { mediation } from './catalogue/mediation.ts'
import { passthruHttp } from './catalogue/passthru-http.ts'
import { passthruHttps } from './catalogue/passthru-https.ts'
import { proxyProfile, securedProxyProfile } from './catalogue/proxies.ts'
import { databaseConfiguration, server, superAdmin } from './catalogue/server.ts'
import { ws, wss } from './catalogue/websocket.ts'
import type { Key, Rule, Section, Values } from './key.ts'

const ALL = [
  server,
  superAdmin,
  databaseConfiguration,
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
  mediation,
] as const

/** One property per section, a list for a repeated one; plain, frozen, and cloneable into another thread. */
export type Configuration = {
  readonly [S in (typeof ALL)[number] as S['name']]: S['repeated'] extends true
    ? readonly Values<S['keys']>[]
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

const ACROSS: readonly CatalogueRule[] = [
  ...PORTS.map(staysPort),
  ...PORTS.flatMap((one, index) => PORTS.slice(0, index).map(other => differs(one, other))),
]

type AnyValues = Readonly<Record<string, unknown>>

function ofSection({ name, repeated }: AnySection, rule: Rule<AnyValues>): CatalogueRule {
  return {
    keys: rule.keys.map(key => `${name}.${key}`),
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
  return SECTIONS.flatMap(({ name, keys }) =>
    Object.entries(keys).map(([key, definition]) => ({ section: name, key, path: `${name}.${key}`, definition })),
  )
}
