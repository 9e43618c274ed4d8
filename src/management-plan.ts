/** What the management listener is told: plain data, made by the primary, replaced by a reload but for its address. */
import type { TlsIdentity, TlsTerms } from './socket/tls.ts'

/** Who may reach a part of it. */
export interface AccessGatePlan {
  /** Networks beside the machine itself; null: everybody. */
  readonly networks: readonly string[] | null
}

/** `[[servlet_access_control_filter]]`. */
export interface AccessFilterPlan {
  /** For the log. */
  readonly name: string
  /** As of servlets: a path, `/folder/*`, `*.ending`, or `/*` and '' for all. */
  readonly urlPattern: string
  /** Of addresses that are let in: all of an address has to match. */
  readonly addressPattern: string
}

export interface ManagementPlan {
  /** '' for all addresses. */
  readonly host: string
  /** With the offset in it; 0: any free one. */
  readonly port: number
  /** `server.base_path`, as `https://host:port`. */
  readonly origin: string
  readonly tls: TlsTerms & { readonly identity: TlsIdentity }
  /** Names that Host may have beside those of the machine itself, in lower case, without a port. */
  readonly hostNames: readonly string[]
  /** `[admin_console.control_access]`: what changes the gateway. */
  readonly console: AccessGatePlan
  /** `[web_app.control_access]`: what applications and their users ask. */
  readonly web: AccessGatePlan
  readonly filters: readonly AccessFilterPlan[]
}
