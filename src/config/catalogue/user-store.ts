/** Where users are kept. The properties carry names of their own, as the reference platform has them. */
import { alsoSpelled, inert, type Key, numberIn, section } from '../key.ts'
import { choice, count, duration, flag, scalar, secret, text } from '../kinds.ts'
import { needsFlag } from './agreements.ts'

const DATABASE = 'users are kept in the database, and read there whenever they are asked for'
const BROWSER = 'there is no page on which a browser would check it'
const LDAP = 'users are kept in the database: no directory is asked'
const SCIM = 'SCIM is one of the management APIs, for whoever has its scopes'
const HOUR_MS = 3_600_000

/** Five to thirty characters, none of them empty. */
const PATTERN = '^[\\S]{5,30}$'

function ldapText(meaning: string): Key<string> {
  return inert(text('', meaning), LDAP)
}

/** Documents leave such numbers empty where they mean the default. */
function orEmpty(wrapped: Key<number>): Key<number> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or empty`,
    schema: { anyOf: [wrapped.schema, { const: '' }] },
    read: given => (given === '' ? wrapped.fallback : wrapped.read(given)),
  }
}

/** Any number below zero means the same as zero does. */
function orLess(means: string, wrapped: Key<number>): Key<number> {
  const less = `less than 0 (${means})`
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or ${less}`,
    range: `${wrapped.range}, or ${less}`,
    schema: { anyOf: [wrapped.schema, { type: 'integer', maximum: -1 }, { type: 'string', pattern: '^-\\d{1,15}$' }] },
    read: given => {
      const number = numberIn(given)
      return typeof number === 'number' && Number.isSafeInteger(number) && number < 0 ? number : wrapped.read(given)
    },
  }
}

export const userStore = section('user_store', 'The store that users are in.', {
  type: inert(text('', 'Type of the store, such as `database_unique_id`; empty: a database.'), DATABASE),
  base_dn: ldapText('Base DN of the directory.'),
  connection_url: ldapText('Address of the directory.'),
  connection_name: ldapText('DN that the directory is asked as.'),
  connection_password: inert(secret('Password that goes with that DN.'), LDAP),
})

export const userStoreProperties = section(
  'user_store.properties',
  'How users and groups are found and checked.',
  {
    PasswordHashMethod: inert(
      choice('SHA-256', ['SHA', 'SHA-1', 'SHA-256', 'MD5', 'PLAIN_TEXT'], 'Hash that passwords are kept as.'),
      'passwords are kept as argon2id and nothing weaker',
    ),
    UserNameListFilter: ldapText('Filter that lists users.'),
    UserNameSearchFilter: ldapText('Filter that finds a user.'),
    UserEntryObjectClass: ldapText('Object class of user entries.'),
    UserSearchBase: ldapText('DN below which users are.'),
    GroupSearchBase: ldapText('DN below which groups are.'),
    UserNameAtribute: alsoSpelled(['UserNameAttribute'], ldapText('Attribute that tells users apart.')),
    PasswordJavaScriptRegEx: inert(text(PATTERN, 'Pattern of passwords, in the browser.'), BROWSER),
    UsernameJavaScriptRegEx: inert(text(PATTERN, 'Pattern of user names, in the browser.'), BROWSER),
    UsernameJavaRegEx: text(PATTERN, 'Pattern of user names, all of which it must match.'),
    PasswordJavaRegEx: text(PATTERN, 'Pattern of passwords, all of which it must match.'),
    RolenameJavaRegEx: text(PATTERN, 'Pattern of role names, all of which it must match.'),
    ReadGroups: inert(flag(true, 'Read groups from the store.'), DATABASE),
    WriteGroups: inert(flag(true, 'Write groups to the store.'), DATABASE),
    GroupNameListFilter: ldapText('Filter that lists groups.'),
    GroupEntryObjectClass: ldapText('Object class of group entries.'),
    GroupNameSearchFilter: ldapText('Filter that finds a group.'),
    GroupNameAttribute: ldapText('Attribute that tells groups apart.'),
    MembershipAttribute: ldapText('Attribute that names the members of a group.'),
    MembershipAttributeRange: inert(
      count(1500, 'members', 1, 1_000_000, 'Members that the directory lists in one answer.'),
      LDAP,
    ),
    UserRoleCacheEnabled: alsoSpelled(
      ['UserRolesCacheEnabled'],
      inert(flag(true, 'Keep the roles of users that were asked for.'), DATABASE),
    ),
    UserDNPattern: ldapText('Pattern that makes a DN of a user name.'),
    ReplaceEscapeCharactersAtUserLogin: ldapText(
      'Escape special characters of user names before the directory is asked.',
    ),
    MultiTenantRealmConfigBuilder: ldapText('Class that makes the store of a tenant.'),
    LDAPConnectionTimeout: inert(
      orEmpty(duration(5000, 'ms', 0, HOUR_MS, 'Longest time a connection to the directory may take to open.')),
      LDAP,
    ),
    ReadTimeout: inert(
      orEmpty(orLess('no end', duration(0, 'ms', 0, HOUR_MS, 'Longest wait for the directory; 0: no end.'))),
      LDAP,
    ),
    RetryAttempts: inert(orEmpty(count(0, 'tries', 0, 100, 'Further tries after a time-out.')), LDAP),
    SCIMEnabled: inert(flag(false, 'Manage users by SCIM.'), SCIM),
    kdcEnabled: inert(flag(false, 'Have the directory issue Kerberos tickets.'), LDAP),
    ConnectionPoolingEnabled: inert(flag(false, 'Keep connections to the directory.'), LDAP),
    BackLinksEnabled: inert(flag(false, 'Read the groups of a user from the entry of the user.'), LDAP),
    UserCoreCacheTimeOut: inert(duration(5, 'm', 0, 525_600, 'How long users that were asked for are kept.'), DATABASE),
    '<name>': inert(scalar('A property that the class of a user store knows.'), 'no class of a user store is loaded'),
    CaseInsensitiveUsername: flag(false, 'Take user names in upper and lower case for the same.'),
  },
  {
    readBy: ['registry/account-rules.ts'],
    rules: [
      {
        keys: ['ReadTimeout'],
        must: 'ReadTimeout of zero or less waits for ever: name the longest wait in milliseconds',
        severity: 'warning',
        holds: it => it.ReadTimeout > 0,
      },
      needsFlag('WriteGroups', 'ReadGroups'),
      {
        keys: ['PasswordHashMethod'],
        must: 'PasswordHashMethod names a hash that protects no password: choose SHA-256',
        severity: 'warning',
        holds: it => it.PasswordHashMethod === 'SHA-256',
      },
    ],
  },
)
