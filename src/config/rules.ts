import { isIP } from 'node:net';
import { isRedisUrl, showRedisUrl } from './addresses.ts';
import type { TextRule } from './text-rule.ts';

/** What text is fit for what; each says in words what its test says. */

/** Braces would move the hash slot that all keys of a deployment share. */
export const DEPLOYMENT: TextRule = {
  fits: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
  allowed: 'up to 63 of A-Z a-z 0-9 _ . - beginning with a letter or digit; no braces, which would move the Redis slot',
};

export const KEY_PREFIX: TextRule = {
  fits: /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$/,
  allowed:
    'up to 63 of A-Z a-z 0-9 _ . : - beginning with a letter or digit; no braces, which would move the Redis slot',
};

/** With an id of 32 digits behind it, 30 characters make 63: the longest name that still is a DNS label. */
export const NAME_PREFIX: TextRule = {
  fits: /^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,29}$/,
  allowed: '2 to 30 of A-Z a-z 0-9 _ . - beginning with a letter or digit, as the engine wants container names',
};

/** `host`, `none` and the like are no networks that keep sandboxes apart. */
export const NETWORK: TextRule = {
  fits: (text) => /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(text) && !['host', 'none', 'default'].includes(text),
  allowed: "the name of an engine's network, other than host, none and default",
};

export const HOST: TextRule = {
  fits: (text) =>
    isIP(text) !== 0 ||
    (/^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/.test(text) && !/(^|\.)(\d+|0x[\da-f]*)$/i.test(text)),
  allowed: 'an IP address (IPv6 without brackets) or a host name',
};

export const IP: TextRule = { fits: (text) => isIP(text) !== 0, allowed: 'an IP address of this host' };

export const REDIS_URL: TextRule = {
  fits: isRedisUrl,
  allowed: 'redis://[user:password@]host[:port][/database], or rediss:// for TLS; no other parts',
  show: showRedisUrl,
};

export const SOCKET_PATH: TextRule = {
  fits: /^(\/|\\\\|\/\/).+$/,
  allowed: 'an absolute path such as /var/run/docker.sock',
};

export const PROFILE_NAME = { fits: /^[a-z0-9-]{1,40}$/, allowed: '1 to 40 of a-z 0-9 -' };

const IMAGE_HOST = /(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?)(?::\d+)?/.source;
const IMAGE_PART = /[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*/.source;
const IMAGE_VERSION = /(?::\w[\w.-]{0,127})?(?:@[a-zA-Z][\w+.-]*:[0-9a-fA-F]{32,})?/.source;

/** As engines read references; what they would refuse is refused before anything starts. */
export const IMAGE: TextRule = {
  fits: new RegExp(`^(?:${IMAGE_HOST}/)?${IMAGE_PART}(?:/${IMAGE_PART})*${IMAGE_VERSION}$`),
  allowed: 'an image reference such as registry.example:5000/team/tool:1.2 or tool@sha256:…, its name in lower case',
};

export const HTTP_PATH: TextRule = { fits: /^\/[!-"$-~]*$/, allowed: 'a path that begins with /, in plain ASCII' };

export const VARIABLE_NAME = { fits: /^[A-Za-z_][A-Za-z0-9_]*$/, allowed: 'letters, digits and _, no digit first' };

export const VARIABLE_VALUE: TextRule = { fits: /^[^\0]*$/, allowed: 'text (in quotes if it looks like a number)' };

export const MOUNT_SOURCE: TextRule = {
  fits: /^(\/|[A-Za-z]:[\\/]|\\\\)|^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/,
  allowed: "an absolute path of the engine's host, or the name of a volume",
};

export const MOUNT_TARGET: TextRule = { fits: /^\/+[^/\0]/, allowed: 'an absolute path in the container, below /' };

/** All of them together would make root on the host of whatever runs in a sandbox. */
export const CAPABILITY: TextRule = {
  fits: /^(?!(?:CAP_)?ALL$)[A-Z][A-Z_]*$/,
  allowed: 'the name of one capability, such as CHOWN; not ALL',
};

export const SECCOMP: TextRule = {
  fits: (text) => text === 'default' || text === 'unconfined' || isJsonObject(text),
  allowed: "default, unconfined, or a profile's JSON text",
};

export const OCI_RUNTIME: TextRule = { fits: /^[\w.-]+$/, allowed: 'the name of an OCI runtime that the engine knows' };

export const NAME: TextRule = { fits: /^[\w.-]{1,64}$/, allowed: '1 to 64 of A-Z a-z 0-9 _ . -' };

/** What an HTTP header can carry. */
export const API_KEY: TextRule = {
  fits: /^[!-~]{1,512}$/,
  allowed: 'text of 1 to 512 ASCII characters, without spaces',
};

export const NOT_EMPTY: TextRule = { fits: /^[^\0]+$/, allowed: 'text, not empty' };

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
