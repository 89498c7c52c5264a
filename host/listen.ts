const ADDRESS = 'SVC_HOST, which accepts an address of this machine';

/** The setting to look at if the service cannot listen. */
const SETTING_AT_FAULT: Readonly<Record<string, string>> = {
  EADDRINUSE: 'SVC_PORT, which accepts another port, and SVC_HOST',
  EACCES: 'SVC_PORT, which accepts a port that this user may listen on',
  EADDRNOTAVAIL: ADDRESS,
  EAFNOSUPPORT: ADDRESS,
  ENOTFOUND: ADDRESS,
  EAI_AGAIN: ADDRESS,
  EINVAL: ADDRESS,
};

/** Why the service cannot listen, and the setting to look at; undefined for an error of another kind. */
export function listenFault({ code, message }: NodeJS.ErrnoException): string | undefined {
  const setting = SETTING_AT_FAULT[code ?? ''];
  return setting && `The service cannot listen: ${message}. See ${setting}.`;
}
