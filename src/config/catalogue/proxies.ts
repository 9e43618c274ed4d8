/** Outgoing proxies, one row each, for plain backends and for those on TLS. */
import { live, repeatedSection, required, type Rule, type Values } from '../key.ts'
import { count, host, secret, text, words } from '../kinds.ts'

const row = {
  target_hosts: live(
    required(words([], 'Backends reached through this proxy: host names, IP addresses, patterns, or `*` for all.')),
  ),
  proxy_host: live(required(host('', 'Host of the proxy.'))),
  proxy_port: live(required(count(0, '', 1, 65_535, 'Port of the proxy.'))),
  proxy_username: live(text('', 'Name the gateway gives to the proxy; empty: it gives none.')),
  proxy_password: live(secret('Password that goes with the name.')),
  bypass_hosts: live(words([], 'Backends among the targets that are reached without this proxy, spelled like them.')),
}

const RULES: readonly Rule<Values<typeof row>>[] = [
  {
    keys: ['proxy_password', 'proxy_username'],
    must: 'proxy_password needs a proxy_username: a password alone is never sent',
    severity: 'fault',
    holds: it => it.proxy_password === '' || it.proxy_username !== '',
  },
  {
    keys: ['proxy_username', 'proxy_password'],
    must: 'proxy_username goes out with an empty password',
    severity: 'warning',
    holds: it => it.proxy_username === '' || it.proxy_password !== '',
  },
]

export const proxyProfile = repeatedSection(
  'transport.http.proxy_profile',
  'An outgoing proxy for backends on plain HTTP; the first row that fits a backend holds, `*` after all others.',
  row,
  { rules: RULES, roles: ['gateway-worker'], readBy: ['primary/forward-proxies.ts'] },
)

export const securedProxyProfile = repeatedSection(
  'transport.http.secured_proxy_profile',
  'An outgoing proxy for backends on TLS, by CONNECT; the first row that fits a backend holds, `*` after all others.',
  row,
  { rules: RULES, roles: ['gateway-worker'], readBy: ['primary/forward-proxies.ts'] },
)
