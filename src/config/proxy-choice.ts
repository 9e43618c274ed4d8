/** Chooses the forward proxy of a host: from profiles as plain data, which threads hand to each other. */
import { HostPattern } from './host-pattern.ts'

/** Texts of host patterns, and the proxy for the hosts that they match. */
export interface ProxyProfile<Proxy> {
  readonly targets: readonly string[]
  /** Hosts among the targets that are connected to directly. */
  readonly bypass: readonly string[]
  readonly proxy: Proxy
}

export class ProxyChoice<Proxy> {
  readonly #profiles: readonly {
    readonly targets: readonly HostPattern[]
    readonly bypass: readonly HostPattern[]
    readonly proxy: Proxy
  }[]

  /** Texts that are no patterns match nothing. */
  constructor(profiles: readonly ProxyProfile<Proxy>[]) {
    this.#profiles = profiles.map(({ targets, bypass, proxy }) => ({
      targets: patternsOf(targets),
      bypass: patternsOf(bypass),
      proxy,
    }))
  }

  /** The first profile that matches the host, one for every host last; null for a direct connection. */
  proxyFor(host: string): Proxy | null {
    const profile =
      this.#profiles.find(({ targets }) => targets.some(target => !target.isAny && target.matches(host))) ??
      this.#profiles.find(({ targets }) => targets.some(target => target.isAny))
    if (profile === undefined || profile.bypass.some(bypass => bypass.matches(host))) return null
    return profile.proxy
  }
}

function patternsOf(texts: readonly string[]): readonly HostPattern[] {
  return texts.map(text => HostPattern.read(text)).filter(pattern => pattern !== undefined)
}
