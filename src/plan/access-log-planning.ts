/** Plans the access log: what each reactor writes, and what the primary does with the file or for syslog. */
import { isAbsolute, join } from 'node:path'
import type { Configuration } from '../config/catalogue.ts'
import { facilityNumber, readLogTemplate, readStatusShare, type StatusShare } from '../config/log-template.ts'
import { templateFields, type TemplatePart } from '../observe/access-template.ts'

/** Plan of the access log of one reactor. */
export interface AccessLogPlan {
  readonly target: Configuration['access_log']['target']
  /** Absolute. */
  readonly path: string
  readonly format: Configuration['access_log']['format']
  /** Parts of a line in the format `template`. */
  readonly template: readonly TemplatePart[]
  readonly escapes: Configuration['access_log']['template_escape']
  /** Fields of requests that the template reads, in lower case. */
  readonly fields: readonly string[]
  readonly shares: readonly StatusShare[]
  /** Most lines in a second; 0: no limit. */
  readonly perSecond: number
}

export function accessLogPlan(configuration: Configuration, dataDir: string, reactors: number): AccessLogPlan {
  const { target, path, format, template, template_escape, sampling, lines_per_second } = configuration.access_log
  const parts = (format === 'template' && readLogTemplate(template)) || []
  return {
    target,
    path: isAbsolute(path) ? path : join(dataDir, path),
    format,
    template: parts,
    escapes: template_escape,
    fields: templateFields(parts),
    shares: sampling.flatMap(share => readStatusShare(share) ?? []),
    perSecond: lines_per_second === 0 ? 0 : Math.max(1, Math.floor(lines_per_second / reactors)),
  }
}

/** When the file of the access log is renamed, and how many earlier files stay. */
export interface RotationPlan {
  /** Absolute. */
  readonly path: string
  /** 0: never by size. */
  readonly bytes: number
  /** 0: never by time. */
  readonly intervalMs: number
  readonly keep: number
}

/** Null: the file is not rotated, or there is none. */
export function rotationPlan(configuration: Configuration, dataDir: string): RotationPlan | null {
  const { target, rotate_bytes, rotate_interval, rotate_keep } = configuration.access_log
  if (target !== 'file' || (rotate_bytes === 0 && rotate_interval === 0)) return null
  const { path } = accessLogPlan(configuration, dataDir, 1)
  return { path, bytes: rotate_bytes, intervalMs: rotate_interval * 1000, keep: rotate_keep }
}

/** Receiver of the lines as messages of RFC 5424. */
interface SyslogPlan {
  readonly protocol: 'udp' | 'tcp' | 'tls'
  readonly host: string
  readonly port: number
  /** Number of the facility. */
  readonly facility: number
  /** Absolute path of a PEM file; '': the authorities of the system. */
  readonly caFile: string
}

/** UDP: RFC 5426 3.3. TLS: RFC 5425 4.1. TCP has none of its own (RFC 6587). */
const PORTS = { udp: 514, tcp: 514, tls: 6514 } as const

/** Null where no line goes to syslog. */
export function syslogPlan(configuration: Configuration, home: string): SyslogPlan | null {
  const { target, 'syslog.url': url, 'syslog.facility': facility, 'syslog.ca_file': ca } = configuration.access_log
  if (target !== 'syslog') return null
  const { protocol, host, hostname, port } = new URL(url)
  const name = protocol.slice(0, -1) as SyslogPlan['protocol']
  return {
    protocol: name,
    host: (hostname || host).replace(/^\[|\]$/g, ''),
    port: port === '' ? PORTS[name] : Number(port),
    facility: facilityNumber(facility),
    caFile: ca === '' || isAbsolute(ca) ? ca : join(home, ca),
  }
}
