/**
 * Adapters rewrite sentences of the specification that the grammar cannot read. An adapter that matches nothing is an
 * error, because the specification has changed.
 */

export interface Adapter {
  /** The reason why the grammar cannot read the sentence. */
  readonly reason: string
  readonly pattern: RegExp
  readonly rewrite: (...found: readonly string[]) => string
}

/** Headings whose tables name no section -> the section of their keys. */
export const HEADING_SECTIONS: Readonly<Record<string, string>> = {
  'User store properties (section name unnamed here)': 'user_store.properties',
}

/** Sentences without keys. */
export const SENTENCES_WITHOUT_KEYS: readonly string[] = [
  'The resources are configuration sections',
  'Types are as stated; many boolean-like keys are typed string with `true`/`false`',
  'Built-in default credentials exist for several keys and are not reproduced; replace them in every deployment',
  'One group per analytics node set',
  'Remaining servlet transport keys and sections after it: not shown',
  'Each key is a content type name mapped to an implementation class; defaults are built in',
  'Sections and keys beyond those listed: not shown',
]

const IN_XML = 'an element of the proxy profile in XML'

/** Words that look like keys -> what they are. */
export const NON_KEYS: ReadonlyMap<string, string> = new Map([
  ['*', 'a value of target_hosts'],
  ['true', 'said of booleans in general'],
  ['false', 'said of booleans in general'],
  ['targetHosts', IN_XML],
  ['proxyHost', IN_XML],
  ['proxyPort', IN_XML],
  ['proxyUserName', IN_XML],
  ['proxyPassword', IN_XML],
])

export const ADAPTERS: readonly Adapter[] = [
  {
    reason: 'the sections of the blocking mode are its two transports, of which the text names one, and late',
    pattern: /^Blocking mode: /,
    rewrite: () => '`[transport.blocking_http]` and `[transport.blocking_https]`: ',
  },
  {
    reason: 'a section is named by its last word',
    pattern: /; wss adds /,
    rewrite: () => '; `[transport.wss]` ',
  },
  {
    reason: 'the profile as text is a key of the sender, and the sections of the table stand behind its keys',
    pattern:
      /: either `(proxyProfiles)` (\(.*?\)) or an array of tables with (.*) \(sections (.*)\)\. `targetHosts`.*$/,
    rewrite: (key, remark, keys, sections) => `: \`sender.${key}\` ${remark}; ${sections}: ${keys}.`,
  },
  {
    reason: 'builders and formatters share a list, and each has a plain section and a blocking one',
    pattern: /Builder keys: ([^.]*)\. Formatter keys: the same plus (\w+) and (\w+)\./,
    rewrite: (builders, ...more) =>
      `${classes('builders', builders!)}. ${classes('formatters', [builders, ...more].join(', '))}.`,
  },
  {
    reason: 'only what stands in brackets is a section: a checker is a group of keys, and one of your own is a row',
    pattern: /Checkers: (`\w+` \(.*?\)); (`\w+` \(.*?\)); custom `\[(\w+)\]` /,
    rewrite: (one, other, custom) => `${checker(one!)}; ${checker(other!)}; \`[[${custom}]]\` `,
  },
  {
    reason: 'the key stands above every table of the file',
    pattern: /^Synapse handlers: (?=`)/,
    rewrite: () => '`[]` ',
  },
  {
    reason: 'every grant type is a section, with what all have and what some have',
    pattern: new RegExp(
      '^Grant types \\(`\\[(.*)\\.<name>\\]`\\): each has (.*); (.*) also have (`\\w+`)\\. ' +
        'Names and enable defaults: (.*) \\(as listed\\)\\. (.*)$',
    ),
    rewrite: (parent, all, some, validator, names, single) =>
      `\`[${parent}.<name>]\` each has ${all}; ${grantTypes(parent!, all!, some!, validator!, names!)}; ` +
      single!.replace(/`(\w+)\.(\w+)`/g, `\`[${parent}.$1]\` \`$2\``),
  },
]

function classes(kind: string, keys: string): string {
  const listed = keys.split(', ').map(key => `\`${key}\` class (default built in)`)
  return `\`[message_${kind}]\`, \`[blocking.message_${kind}]\`: ${listed.join(', ')}`
}

/** Rewrites "`name` (`a` true, properties `b`)" to "`name.a` true, `name.properties.b`". */
function checker(text: string): string {
  const [, name, keys, properties] = /^`(\w+)` \((.*?)(?:, properties (.*))?\)$/.exec(text)!
  const groups = [
    [`${name}.`, keys!],
    [`${name}.properties.`, properties ?? ''],
  ] as const
  return groups.map(([group, listed]) => listed.replace(/`(?=\w)/g, `\`${group}`)).join(', ')
}

function grantTypes(parent: string, all: string, some: string, validator: string, names: string): string {
  const sections = names.split(', ').map(named => {
    const [name, enabled] = named.split(' ')
    const keys = all.replace('`enable` boolean', `\`enable\` boolean default ${enabled}`)
    return `\`[${parent}.${name}]\` ${keys}${some.includes(`\`${name}\``) ? `, ${validator} class` : ''}`
  })
  return sections.join('; ')
}
