/**
 * The sections in documented order, and what keys of different sections must agree on. Defaults, types, validation,
 * `explain` and the reference page come from here and from nowhere else.
 */
import { accessLog, listener, logging, management } from './catalogue/management.ts'
import { passthruHttp } from './catalogue/passthru-http.ts'
import { passthruHttps } from './catalogue/passthru-https.ts'
import { proxyProfile, securedProxyProfile } from './catalogue/proxies.ts'
import { databaseConfiguration, server, superAdmin } from './catalogue/server.ts'
import type { Key, Rule, Section, Values } from './key.ts'

const ALL = [
  server,
  superAdmin,
  databaseConfiguration,
  passthruHttp,
  passthruHttps,
  proxyProfile,
  securedProxyProfile,
  listener,
  management,
  accessLog,
  logging,
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

const MANAGEMENT_PORT = 'management.health_port'
const LISTENER_PORT = 'transport.passthru_http.listener.parameters.port'

function withOffset(port: number, configuration: Configuration): number {
  return port === 0 ? 0 : port + configuration.server.offset
}

const ACROSS: readonly CatalogueRule[] = [
  {
    keys: [LISTENER_PORT, 'server.offset'],
    must: 'listener.parameters.port and server.offset must add up to 65535 at most',
    repeats: '',
    severity: 'fault',
    holds: it => withOffset(it['transport.passthru_http']['listener.parameters.port'], it) <= 65_535,
  },
  {
    keys: [MANAGEMENT_PORT, 'server.offset'],
    must: 'management.health_port and server.offset must add up to 65535 at most',
    repeats: '',
    severity: 'fault',
    holds: it => withOffset(it.management.health_port, it) <= 65_535,
  },
  {
    keys: [MANAGEMENT_PORT, LISTENER_PORT],
    must: 'two listeners must not share a port',
    repeats: '',
    severity: 'fault',
    holds: it =>
      it.management.health_port === 0 ||
      it.management.health_port !== it['transport.passthru_http']['listener.parameters.port'],
  },
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
